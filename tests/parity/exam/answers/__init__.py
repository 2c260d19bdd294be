"""The commands that answer the questions, and where their answers stand: ours, and XProf's."""
