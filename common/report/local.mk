common_libsluice_la_SOURCES += \
	common/report/report_text.cpp \
	common/report/sacct_report.cpp \
	common/report/sacct_report.hpp \
	common/report/summary.cpp \
	common/report/summary.hpp
