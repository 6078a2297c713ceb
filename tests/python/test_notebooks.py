"""The notebooks of examples/notebooks run from their first cell to the last, each within 20 s of the processor; the tree has them without
outputs. And what notebooks ask of the module: drawings, a bar while it runs, an interrupt that ends a run cleanly.

    python test_notebooks.py [NOTEBOOK...]
"""
import os
import resource
import signal
import sys
import threading
import time
import unittest

try:
    import nbclient
    import nbformat
except ImportError:
    print("nbclient is not installed")
    sys.exit(0)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "examples", "notebooks")


def run(cells, folder=FOLDER):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    return nbclient.NotebookClient(book, timeout=100, resources={"metadata": {"path": folder}})


def html_of(cell):
    return "".join(o.get("data", {}).get("text/html", "") for o in cell.outputs)


class Notebooks(unittest.TestCase):
    def check(self, name):
        book = nbformat.read(os.path.join(FOLDER, name), as_version=4)
        nbformat.validate(book)
        for cell in book.cells:
            if cell.cell_type == "code":
                self.assertEqual((cell.outputs, cell.execution_count), ([], None), f"{name} has outputs")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        nbclient.NotebookClient(book, timeout=100, resources={"metadata": {"path": FOLDER}}).execute()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name}: {took:.1f} s")
        self.assertLess(took, 20)
        return book

    def test_a_first_system(self):
        book = self.check("first_system.ipynb")
        shown = [html_of(c) for c in book.cells if c.cell_type == "code"]
        self.assertIn('class="topology"', shown[0])
        self.assertIn("second.v2 → first.v2", shown[1])
        self.assertIn("<svg", shown[1])

    def test_latency(self):
        self.check("latency.ipynb")

    def test_a_circuit_and_its_twin(self):
        self.check("circuit_and_twin.ipynb")

    def test_a_study(self):
        self.check("study.ipynb")

    def test_all_of_them_are_here(self):
        self.assertEqual(sorted(n for n in os.listdir(FOLDER) if n.endswith(".ipynb")),
                         ["circuit_and_twin.ipynb", "first_system.ipynb", "latency.ipynb", "study.ipynb"])


SLOW = """
import cardan
slow = cardan.System().add("push", signal={"shape": "sine", "frequency": 2}).options(step=1e-4, stop=1e6)
import os; print(os.getpid())
"""


class Interactive(unittest.TestCase):
    def test_a_bar_while_it_runs_and_a_clean_end_when_interrupted(self):
        client = run([SLOW, "slow.run()", "import sys; e = sys.last_value; (type(e).__name__, e.run.ended, e.run.time > 0, "
                      "len(e.run['t']) > 10)"])
        client.allow_errors = True
        with client.setup_kernel():
            client.execute_cell(client.nb.cells[0], 0)

            def interrupt():  # once the bar is seen
                for _ in range(600):
                    if "<progress" in html_of(client.nb.cells[1]):
                        break
                    time.sleep(0.1)
                os.kill(int(client.nb.cells[0].outputs[0]["text"]), signal.SIGINT)
            thread = threading.Thread(target=interrupt)
            thread.start()
            client.execute_cell(client.nb.cells[1], 1)
            thread.join()
            client.execute_cell(client.nb.cells[2], 2)
        self.assertIn("<progress", html_of(client.nb.cells[1]))
        self.assertEqual([o.ename for o in client.nb.cells[1].outputs if o.output_type == "error"], ["KeyboardInterrupt"])
        said = client.nb.cells[2].outputs[0]["data"]["text/plain"]
        self.assertEqual(said, "('KeyboardInterrupt', 'interrupted', True, True)")


if __name__ == "__main__":
    unittest.main(verbosity=1)
