/** `hyperkube node install`, `start`, `stop`, `remove` and `logs`: manage the supervisor as a systemd service. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'

import { onAbort } from '#lib/abort.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, int, oneOf, string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { NODE_ROLES } from '#supervisor/agent/parameters.ts'
import { cleanMachine } from '#supervisor/agent/removal.ts'
import type { Host } from '#supervisor/host.ts'
import { linuxHost } from '#supervisor/linux/host.ts'
import { type Installation, INSTALLATION, startAll, stopAll, unitFile } from '#supervisor/linux/installation.ts'
import { UNIT } from '#supervisor/linux/unit.ts'
import { PROCESS_NAMES } from '#supervisor/process-names.ts'
import { readSettings } from '#supervisor/settings-file.ts'
import { takeSteps, undoSteps } from '#supervisor/steps.ts'
import { powershellArgs } from '#supervisor/windows/real/powershell.ts'

import { OWN_PROGRAM } from '../program-path.ts'
import { AGENT_FLAGS, agentSettings, type AgentFlags } from './agent.ts'
import { CONFIG_FILE, METRICS_FLAG, ROOT_FLAG } from './machine.ts'

type Context = Pick<ProgramContext, 'clock' | 'stdout'>

async function withHost<T>(root: string, { clock, stdout }: Context, use: (host: Host) => Promise<T>): Promise<T> {
  const http = createHttpClient({ clock })
  try {
    const say = (text: string): void => void stdout.write(`${text}\n`)
    return await use(linuxHost({ clock, http, root, say, ended: () => undefined }))
  } catch (cause) {
    throw cause instanceof ProgramError ? cause : new ProgramError(messageOf(cause as Error), { cause })
  } finally {
    http.close()
  }
}

/** The output of a failed program is more useful than its exit code. */
function messageOf(error: Error & { readonly stderr?: string }): string {
  return error.stderr?.trim() || error.message
}

interface InstallFlags extends AgentFlags {
  readonly config: string
  readonly logs: 'files' | 'journal'
  readonly 'metrics-bind-address': string
  readonly start: boolean
  readonly root: string
}

const INSTALL_FLAGS: { readonly [K in Exclude<keyof InstallFlags, keyof AgentFlags>]: Flag<InstallFlags[K]> } = {
  config: flag(string, CONFIG_FILE, '`file` with the settings of this node, without a server'),
  logs: flag(oneOf('files', 'journal'), 'journal', 'destination of the output of the three programs: files or journal'),
  'metrics-bind-address': METRICS_FLAG,
  start: flag(bool, true, 'start the service now'),
  root: ROOT_FLAG,
}

export const install: Program = defineProgram({
  name: 'install',
  long:
    'install creates a systemd service for the supervisor that starts with the machine, with a settings file ' +
    '(--config) or with the plan of a server (--server). This program also serves as kubelet, flanneld and kube-proxy, unless others ' +
    'are in /usr/local/lib/hyperkube/bin. A second run changes only what differs.',
  flags: { agent: AGENT_FLAGS, service: INSTALL_FLAGS },
  async run({ flags, ...context }) {
    const command = await commandFor(flags, context)
    return withHost(flags.root, context, async (host) => {
      const installation = { host, root: flags.root, executable: OWN_PROGRAM, startsNow: flags.start, ...command }
      const taken = await takeSteps(INSTALLATION, installation, (text) => void context.stdout.write(`${text}\n`))
      if (taken.length === 0) context.stdout.write('everything is already installed\n')
      return 0
    })
  },
})

/** Throws ProgramError for settings that cannot work. */
async function commandFor(
  flags: InstallFlags,
  context: Pick<ProgramContext, 'env' | 'cwd' | 'readFile'>,
): Promise<Pick<Installation, 'command' | 'variables'>> {
  const { logs: where, root, 'metrics-bind-address': metrics } = flags
  const rest = [
    `--logs=${where}`,
    ...(metrics === '' ? [] : [`--metrics-bind-address=${metrics}`]),
    ...(root === '/' ? [] : [`--root=${root}`]),
  ]
  if (flags.server === '' && (context.env['CATTLE_SERVER'] ?? '') === '') {
    const config = resolve(context.cwd, flags.config)
    const text = await context.readFile(config).catch((cause: unknown) => {
      throw new ProgramError(`Provide the settings of this node in ${config} or by --server`, { cause })
    })
    readSettings(parseYaml(text))
    return { command: [OWN_PROGRAM, 'node', 'run', `--config=${config}`, ...rest], variables: {} }
  }
  const { server, token, caChecksum, nodeName, address, internalAddress } = await agentSettings(flags, context)
  const required = { SERVER: server, TOKEN: token, CA_CHECKSUM: caChecksum, NODE_NAME: nodeName }
  const known = { ...required, ADDRESS: address, INTERNAL_ADDRESS: internalAddress }
  const given = Object.entries(known).filter(([, value]) => value !== '')
  const marks = [
    ...NODE_ROLES.filter((role) => flags[role]).map((role) => `--${role}`),
    ...flags.label.map((text) => `--label=${text}`),
    ...flags.taint.map((text) => `--taint=${text}`),
    ...flags['loopback-port'].map((port) => `--loopback-port=${port}`),
    ...(flags.kubeconfig === '' ? [] : [`--kubeconfig=${resolve(context.cwd, flags.kubeconfig)}`]),
  ]
  return {
    command: [OWN_PROGRAM, 'node', 'agent', ...marks, ...rest],
    variables: Object.fromEntries(given.map(([name, value]) => [`CATTLE_${name}`, value])),
  }
}

export const start: Program = defineProgram({
  name: 'start',
  long: 'start starts the service that "node install" created.',
  flags: { service: { root: ROOT_FLAG } },
  run: ({ flags, ...context }) =>
    withHost(flags.root, context, async (host) => {
      await startAll({ host })
      return 0
    }),
})

export const stop: Program = defineProgram({
  name: 'stop',
  long:
    'stop stops the service, and then kubelet, flanneld and kube-proxy. Containers keep running. ("systemctl stop" stops only the ' +
    'supervisor; the three programs keep running, and the next supervisor adopts them.)',
  flags: { service: { root: ROOT_FLAG } },
  run: ({ flags, ...context }) =>
    withHost(flags.root, context, async (host) => {
      await stopAll({ host, root: flags.root })
      return 0
    }),
})

export const remove: Program = defineProgram({
  name: 'remove',
  long: 'remove stops everything and removes the service, the pod network and the files of this node.',
  flags: { service: { root: ROOT_FLAG, files: flag(bool, true, 'also remove the files of the node') } },
  run: ({ flags, ...context }) =>
    withHost(flags.root, context, async (host) => {
      await removeService(host, flags.root)
      if (flags.files) await cleanMachine(host)
      return 0
    }),
})

export function removeService(host: Host, root: string): Promise<void> {
  const installation = { host, root, executable: OWN_PROGRAM, command: [], variables: {}, startsNow: false }
  return undoSteps(INSTALLATION, installation, host.say)
}

const LOG_NAMES = ['supervisor', ...PROCESS_NAMES]

export const logs: Program = defineProgram({
  name: 'logs',
  long: 'logs shows the output of the supervisor, kubelet, flanneld or kube-proxy, from the journal or from files.',
  use: '[supervisor | kubelet | flanneld | kube-proxy | kube-network-policies] [flags]',
  operands: true,
  flags: {
    logs: {
      follow: flag(bool, false, 'follow the log', { shorthand: 'f' }),
      lines: flag(int, 200, 'number of last lines to show', { shorthand: 'n' }),
      root: ROOT_FLAG,
      'base-dir': flag(string, 'c:\\k', '`folder` in which the Windows worker was set up'),
    },
  },
  async run({ flags, operands, stdout }, signal) {
    const [name = 'supervisor', ...others] = operands
    if (others.length > 0 || !LOG_NAMES.includes(name))
      throw new ProgramError(`unknown name "${operands.join(' ')}"; use one of ${LOG_NAMES.join(', ')}`)
    const unit = await readFile(unitFile(flags.root), 'utf8').catch(() => '')
    const ask = { ...flags, name, isInJournal: unit.includes('--logs=journal') }
    const [program, args, input = ''] =
      process.platform === 'win32' ? windowsLogCommand(ask, flags['base-dir']) : logCommand(ask)
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.on('error', () => undefined).end(input)
    const release = onAbort(signal, () => void child.kill())
    const ended = new Promise<number>((done, reject) => {
      child.on('error', (cause) => reject(new ProgramError(`Cannot run ${program}: ${cause.message}`, { cause })))
      child.on('close', (code) => done(code ?? 0))
    })
    const [code] = await Promise.all([ended, pipeline(child.stdout, stdout, { end: false })])
    release()
    return code
  },
})

interface LogRequest {
  readonly name: string
  readonly isInJournal: boolean
  readonly follow: boolean
  readonly lines: number
  readonly root: string
}

type LogCommand = readonly [program: string, args: string[], input?: string]

/** The supervisor has no service on Windows, so the kubelet's log is the default. */
function windowsLogCommand({ name, lines, follow }: LogRequest, baseDir: string): LogCommand {
  const of = name === 'supervisor' ? 'kubelet' : name
  const path = `${baseDir}\\logs\\${of}\\${of}svc.log`
  return ['powershell.exe', powershellArgs('log-tail'), JSON.stringify({ path, lines, follow })]
}

/** The supervisor always logs to the journal, because systemd starts it. */
function logCommand({ name, isInJournal, follow, lines, root }: LogRequest): LogCommand {
  if (!isInJournal && name !== 'supervisor')
    return ['tail', ['-n', String(lines), ...(follow ? ['-F'] : []), join(root, `/var/log/hyperkube/${name}.log`)]]
  const identifier = name === 'supervisor' ? 'hyperkube-node' : name
  const how = ['--no-pager', `--lines=${lines}`, ...(follow ? ['--follow'] : [])]
  return ['journalctl', [`--unit=${UNIT}`, `--identifier=${identifier}`, ...how]]
}
