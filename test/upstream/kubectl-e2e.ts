/**
 * Runs upstream's e2e tests of kubectl ([sig-cli], including conformance tests) with our kubectl as `--kubectl-path`:
 * `node test/upstream/kubectl-e2e.ts [--focus REGEXP] [--skip REGEXP] [--procs N] [--kubectl FILE]`. Runs as root
 * against `hyperkube up` with containers. `--kubectl` tests another one, such as upstream's. Exits with 1 if a test
 * fails; leaves nothing on the machine.
 */
import { symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { endWithSuite } from '../conformance/suite.ts'
import { runLabelled } from './labelled-tests.ts'
import { HYPERKUBE } from './ours.ts'

const { values: options } = parseArgs({
  options: {
    focus: { type: 'string' },
    skip: { type: 'string' },
    procs: { type: 'string' },
    kubectl: { type: 'string' },
  },
})

/** Called by the name that it is known by. */
async function ours(folder: string): Promise<string> {
  const file = join(folder, 'kubectl')
  await symlink(HYPERKUBE, file)
  return file
}

const { focus = '', skip, kubectl } = options

endWithSuite()
process.exitCode = await runLabelled({
  label: 'sig-cli',
  images: ['agnhost', 'e2e-busybox', 'httpd', 'nginx', 'pause'],
  procs: Number(options.procs ?? 2),
  isChosen: (name) => new RegExp(focus).test(name) && (skip === undefined || !new RegExp(skip).test(name)),
  kubectl: kubectl === undefined ? ours : () => Promise.resolve(resolve(kubectl)),
})
