"""Grading a class: students' code runs in kernels of its own, and everything that decides runs outside of them.

collect.py, repair.py     find and read the submissions, put damaged notebooks right
kernel.py, stand_in.py    one student's process, and what stands for the course's packages in it
sandbox.py                the walls around that process
session.py, wire.py       a notebook's cells there, its verdicts here; nothing that comes out is believed
suspicious.py             what deserves an instructor's look
one.py, classroom.py      a submission, a class
claim.py                  whose the folder of results is
tables.py, feedback.py, report.py
plain.py                  a student's words, harmless and short
nbgrader_steps.py         the same as steps of nbgrader's own autograde
"""
