/** The machine for the `hyperkube node` commands: paths of files, and the status that the supervisor writes. */
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { AgentStatus } from '#supervisor/agent/agent.ts'
import type { Host } from '#supervisor/host.ts'
import { linuxHost, type LinuxHostOptions } from '#supervisor/linux/host.ts'
import type { NodeSettings } from '#supervisor/settings.ts'
import { Supervisor, type SupervisorEvent, type SupervisorStatus } from '#supervisor/supervisor.ts'

import type { RecordEvent, Tools } from './events.ts'

export const ROOT_FLAG: Flag<string> = flag(string, '/', '`folder` for all files, if several nodes share the machine')

export const METRICS_FLAG: Flag<string> = flag(
  string,
  '',
  '`host:port` for /metrics and /healthz of the supervisor; empty disables them',
)

export const CONFIG_FILE = '/etc/kubernetes/node.yaml'

export interface SupervisionFlags {
  readonly 'kubelet-health': string
  readonly 'kube-proxy-health': string
  readonly 'metrics-bind-address': string
  readonly events: boolean
  readonly logs: 'files' | 'journal'
  readonly root: string
}

/** The flags of all commands that supervise. */
export const SUPERVISION_FLAGS: { readonly [K in keyof SupervisionFlags]: Flag<SupervisionFlags[K]> } = {
  'kubelet-health': flag(
    string,
    'http://127.0.0.1:10248/healthz',
    "`address` of the kubelet's health endpoint; empty disables the check",
  ),
  'kube-proxy-health': flag(
    string,
    'http://127.0.0.1:10256/livez',
    "`address` of kube-proxy's health endpoint; empty disables the check",
  ),
  'metrics-bind-address': METRICS_FLAG,
  events: flag(bool, true, 'record actions as Events of the Node, with the credentials of the node'),
  logs: flag(oneOf('files', 'journal'), 'files', 'destination of the output of the three programs: files or journal'),
  root: ROOT_FLAG,
}

/** The contents of `node status`. */
export interface NodeStatus extends Partial<SupervisorStatus> {
  readonly agent?: AgentStatus | undefined
}

export function statusFile(root: string): string {
  return join(root, '/run/hyperkube/node/status.json')
}

export interface Supervision {
  readonly host: Host
  readonly createSupervisor: (settings: NodeSettings) => Supervisor
  /** Writes the current status for `node status`. */
  readonly leaveStatus: () => void
}

/** `agent` provides the status of the agent. */
export async function superviseHere(
  flags: SupervisionFlags,
  tools: Tools,
  closing: AsyncDisposableStack,
  agent?: () => AgentStatus | undefined,
): Promise<Supervision> {
  const { clock, random, log } = tools
  const http = createHttpClient({ clock })
  closing.defer(() => http.close())
  let supervisor: Supervisor | undefined
  const host = await hostHere(flags, {
    clock,
    http,
    say: (text: string) => log.info(text),
    ended: () => supervisor?.wake(),
  })
  const leaveStatus = statusWriter(flags.root, tools, () => ({
    ...supervisor?.status,
    ...(agent && { agent: agent() }),
  }))
  const record = flags.events ? eventRecorder(host, tools, closing) : (): void => undefined
  if (flags['metrics-bind-address'] !== '') {
    const { serveNodePages } = await import('./node-pages.ts')
    const pages = { clock, log, closing, isFatal: true }
    await serveNodePages(flags['metrics-bind-address'], pages, () => ({
      supervisor: supervisor?.status,
      agent: agent?.(),
    }))
  }
  const createSupervisor = (settings: NodeSettings): Supervisor => {
    supervisor = new Supervisor({
      host,
      random,
      settings,
      health: { kubelet: flags['kubelet-health'], 'kube-proxy': flags['kube-proxy-health'] },
      report(event) {
        log.info(event.message, { reason: event.reason })
        leaveStatus()
        record(event, settings.nodeName)
      },
    })
    return supervisor
  }
  return { host, createSupervisor, leaveStatus }
}

/** Each platform loads only its own host implementation. */
async function hostHere(
  { root, logs }: SupervisionFlags,
  seen: Omit<LinuxHostOptions, 'root' | 'logs'>,
): Promise<Host> {
  if (process.platform !== 'win32') return linuxHost({ ...seen, root, logs })
  const { windowsHost } = await import('#supervisor/windows/real/windows-host.ts')
  return windowsHost(seen)
}

/** Writes one after the other, so that the last write has the latest status. */
function statusWriter(root: string, { log }: Pick<Tools, 'log'>, status: () => NodeStatus): () => void {
  let isScheduled = false
  let last = Promise.resolve()
  const write = async (): Promise<void> => {
    isScheduled = false
    await mkdir(dirname(statusFile(root)), { recursive: true, mode: 0o700 })
    const text = `${JSON.stringify(status(), undefined, 2)}\n`
    await writeFileAtomically(statusFile(root), text, { mode: 0o600 })
  }
  return () => {
    if (isScheduled) return
    isScheduled = true
    last = last
      .then(write)
      .catch((error: unknown) => log.error(error, 'Failed to write the status file of hyperkube node'))
  }
}

/** Connects to the API server for the first event, and again after certificates may have changed. */
function eventRecorder(
  host: Host,
  tools: Tools,
  closing: AsyncDisposableStack,
): (event: SupervisorEvent, node: string) => void {
  let connection = new AsyncDisposableStack()
  closing.defer(() => connection.disposeAsync())
  let opening: Promise<RecordEvent> | undefined
  const open = async (nodeName: string): Promise<RecordEvent> => {
    const { openNodeEvents } = await import('./events.ts')
    const node = (await host.environment.get('NODE_NAME')) ?? nodeName
    return openNodeEvents(tools, { kubeconfig: host.layout.nodeKubeconfig, node: node.toLowerCase() }, connection)
  }
  return (event, nodeName) => {
    if (event.reason === 'SettingsChanged') {
      void connection.disposeAsync()
      connection = new AsyncDisposableStack()
      opening = undefined
    }
    opening ??= open(nodeName)
    opening.then(
      (record) => record(event),
      (error: unknown) => {
        opening = undefined
        tools.log.info('Failed to record event', { reason: (error as Error).message })
      },
    )
  }
}
