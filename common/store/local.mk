common_libsluice_la_SOURCES += \
	common/store/journal.cpp \
	common/store/journal.hpp
