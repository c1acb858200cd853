common_libsluice_la_SOURCES += \
	common/samples/loss_point.hpp \
	common/samples/loss_reader.cpp \
	common/samples/loss_reader.hpp \
	common/samples/log_follower.cpp \
	common/samples/log_follower.hpp
