/**
 * `hyperkube at MOMENT`: a shell or a command whose kubeconfig leads to the cluster as it was, for any client. Clients
 * read the past below the path `/past/<moment>` of the server.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'

import { pastKubeconfig } from '#kubectl/config/past-config.ts'
import { KubectlError } from '#kubectl/errors.ts'
import { runKubectl } from '#kubectl/kubectl.ts'
import { absoluteMoment } from '#kubectl/past/absolute-moment.ts'
import { runInherited } from '#kubectl/plugins/dispatch.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'

export const at: Program = {
  name: 'at',
  run: (context, signal) => {
    const line = splitLine(context.args)
    return programFor(line).run({ ...context, args: line.flags }, signal)
  },
}

export interface AtLine {
  readonly moments: readonly string[]
  readonly flags: readonly string[]
  /** The words after `--`; undefined without it. */
  readonly command: readonly string[] | undefined
}

/** Separates moments from flags, because `-2h` looks like one. */
export function splitLine(args: readonly string[]): AtLine {
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  const isAgo = (arg: string): boolean => /^-\d/.test(arg)
  const command = end < 0 ? undefined : args.slice(end + 1)
  return { moments: own.filter(isAgo), flags: own.filter((arg) => !isAgo(arg)), command }
}

function programFor({ moments, command }: AtLine): Program {
  return defineProgram({
    name: 'at',
    long: LONG,
    use: 'MOMENT [flags] [-- COMMAND...]',
    operands: true,
    flags: {
      at: {
        kubeconfig: flag(string, '', 'kubeconfig `file` (default: KUBECONFIG, or ~/.kube/config)'),
        context: flag(string, '', 'The context of the kubeconfig (default: its current context)'),
        print: flag(bool, false, 'Print the kubeconfig instead. The default without a terminal and a command'),
      },
    },
    async run({ flags, operands, ...context }) {
      const [moment, ...others] = [...moments, ...operands]
      if (moment === undefined || others.length > 0)
        throw new ProgramError('Give one moment: -2m, 2026-11-18T03:00Z or rv:812')
      if (command?.length === 0) throw new ProgramError('Give a command after "--"')
      if (command !== undefined && flags.print) throw new ProgramError('--print has no effect on a command')
      const { text } = await explained(() => absoluteMoment('MOMENT', moment, context.clock.now()))
      const config = await explained(() => pastKubeconfig({ ...context, flags }, text))
      if (flags.print || (command === undefined && !isTerminal(context.stdout))) {
        context.stdout.write(config)
        return 0
      }
      const code = await checkPast(context, flags, text)
      return code === 0 ? runWith(context, { config, text, command }) : code
    },
  })
}

const LONG = `at opens a shell for the cluster as it was. KUBECONFIG of the shell is a temporary file with the current
context, whose server has the path of the moment. kubectl, k9s, Helm and other clients read the past with it; they
cannot change it.

A moment is a time ago (-2m), a time (2026-11-18T03:00Z) or a resourceVersion (rv:812).

  hyperkube at -2m                          opens a shell
  hyperkube at -2m -- kubectl get pods      runs one command and returns its exit code
  hyperkube at 2026-11-18T03:00Z --print    prints the kubeconfig

kubectl of hyperkube reads the past without it, compares two moments and undoes changes:

  kubectl get pods --at -2m                 also describe, events, explain and api-resources
  kubectl get pods -w --at -2m --speed 60   plays the changes after the moment
  kubectl diff --from -2m [--to -1m]        shows the differences
  kubectl history deployment/web            lists its changes, with who made them
  kubectl why pod/web-1                     says why it is Pending
  kubectl undo deployment/web               undoes the last change; see "kubectl undo --help"`

function isTerminal(stream: object): boolean {
  return (stream as { readonly isTTY?: boolean }).isTTY === true
}

async function explained<T>(task: () => Promise<T> | T): Promise<T> {
  try {
    return await task()
  } catch (error) {
    if (!(error instanceof KubectlError || error instanceof ConfigError)) throw error
    throw new ProgramError(error.message, { cause: error })
  }
}

type Flags = Readonly<Record<'kubeconfig' | 'context', string>>

/** Reads one page of the past; kubectl prints the reason if the server does not have it. */
async function checkPast(context: ProgramContext, { kubeconfig, context: name }: Flags, text: string): Promise<number> {
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() })
  const chosen = [
    ...(kubeconfig === '' ? [] : ['--kubeconfig', kubeconfig]),
    ...(name === '' ? [] : ['--context', name]),
  ]
  const args = ['get', '--raw', '/api', '--at', text, ...chosen]
  return runKubectl({ ...context, path: ['kubectl'], args, stdout }, new AbortController().signal)
}

interface PastRun {
  readonly config: string
  readonly text: string
  readonly command: readonly string[] | undefined
}

/** The exit code of the command or of the shell. */
async function runWith(context: ProgramContext, { config, text, command }: PastRun): Promise<number> {
  const { env, stderr } = context
  const folder = await mkdtemp(join(env['TMPDIR'] || tmpdir(), 'hyperkube-at-'))
  const file = join(folder, 'kubeconfig')
  try {
    await writeFile(file, config, { mode: 0o600 })
    if (command === undefined)
      stderr.write(`This shell reads the cluster at ${text}, read-only (KUBECONFIG=${file}). "exit" leaves it.\n`)
    const [program = '', ...args] = command ?? [env['SHELL'] || env['ComSpec'] || '/bin/sh']
    return await runInherited(program, args, { ...context, env: { ...env, KUBECONFIG: file } }).catch(
      (cause: Error) => {
        throw new ProgramError(`Cannot run "${program}": ${cause.message}`, { cause })
      },
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
