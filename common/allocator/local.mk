common_libsluice_la_SOURCES += \
	common/allocator/policy.cpp \
	common/allocator/policy.hpp \
	common/allocator/fifo.cpp \
	common/allocator/progress.cpp
