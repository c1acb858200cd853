common_libsluice_la_SOURCES += \
	common/jobspec/jobspec.cpp \
	common/jobspec/jobspec.hpp
