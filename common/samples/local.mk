common_libsluice_la_SOURCES += \
	common/samples/loss_point.hpp \
	common/samples/loss_reader.cpp \
	common/samples/loss_reader.hpp
