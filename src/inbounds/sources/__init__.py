"""Where scans come from: public data sets, a user's folder, generated hearts."""
