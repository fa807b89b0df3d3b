/** `hyperkube build config`: asks for the settings of a cluster and writes its cluster.yml. */
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

import { PAUSE_IMAGE } from '#containerd/pause-image.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { ownImage } from '#model/own-image.ts'
import { KUBERNETES_VERSION } from '#model/version.ts'
import { sayTo } from '#provision/builder/progress.ts'
import { clusterJsonSchema } from '#provision/file/cluster-json-schema.ts'
import { askCluster, type Questions } from '#provision/file/config-questions.ts'
import { configText, type Draft } from '#provision/file/config-text.ts'

import { OUTPUT_FLAGS } from './flags.ts'

/** RKE's mode, because the file may contain keys and passwords. */
const MODE = 0o640

export const config: Program = defineProgram({
  name: 'config',
  long:
    'config asks for the machines, the network and the addons of a cluster, and writes a cluster.yml with every key ' +
    'and its description.',
  flags: {
    config: {
      name: flag(string, 'cluster.yml', '`file` to write', { shorthand: 'n' }),
      empty: flag(bool, false, 'do not ask; write a file with one machine to fill in', { shorthand: 'e' }),
      print: flag(bool, false, 'print the file instead of writing it', { shorthand: 'p' }),
      'system-images': flag(bool, false, 'print the images that a cluster runs', { shorthand: 's' }),
      'list-version': flag(bool, false, 'print the version of Kubernetes that is built', { shorthand: 'l' }),
      all: flag(bool, false, 'with --list-version or --system-images: for all versions; there is only one', {
        shorthand: 'a',
      }),
      ...OUTPUT_FLAGS,
      schema: flag(bool, false, 'print a JSON schema of cluster.yml, for editors'),
    },
  },
  async run({ flags, stdin, stdout, stderr, cwd }, signal) {
    if (flags['system-images']) {
      sayTo(
        flags,
        stderr,
      )(`Images for version [${KUBERNETES_VERSION}]; the machines build them, no registry is needed:`)
      return print(stdout, SYSTEM_IMAGES.join('\n'))
    }
    if (flags['list-version']) return print(stdout, KUBERNETES_VERSION)
    if (flags.schema) return print(stdout, JSON.stringify(clusterJsonSchema(), undefined, 2))
    const draft = flags.empty ? EMPTY : await answer(askCluster(), { stdin: stdin(), stdout, signal })
    const text = configText(draft)
    if (flags.print) return print(stdout, text.trimEnd())
    const file = resolve(cwd, flags.name)
    await writeFileAtomically(file, text, { mode: MODE })
    sayTo(flags, stdout)(`Wrote ${file}; build the cluster with "hyperkube build up --config ${flags.name}"`)
    return 0
  },
})

/** The images of all addons, and the pause image. */
const SYSTEM_IMAGES: readonly string[] = [ownImage(), PAUSE_IMAGE]

const EMPTY: Draft = { nodes: [{ address: '', user: 'ubuntu', role: ['controlplane', 'worker', 'etcd'] }] }

function print(stdout: Writable, text: string): number {
  stdout.write(`${text}\n`)
  return 0
}

interface Terminal {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly signal: AbortSignal
}

/** Asks RKE's questions and reads one line for each. */
async function answer<T>(questions: Questions<T>, { stdin, stdout, signal }: Terminal): Promise<T> {
  const lines = createInterface({ input: stdin, signal })[Symbol.asyncIterator]()
  let step = questions.next()
  while (!step.done) {
    const { text, byDefault, complaint } = step.value
    if (complaint !== undefined) stdout.write(`${complaint}\n`)
    stdout.write(`[+] ${text} [${byDefault === '' ? 'none' : byDefault}]: `)
    const line = await lines.next()
    signal.throwIfAborted()
    if (line.done) throw new ProgramError('The input ended before all questions were answered; nothing was written')
    step = questions.next(line.value)
  }
  return step.value
}
