/** This machine as commands of `hyperkube node` see it: where its files are, what the supervisor leaves for others to read. */
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { AgentStatus } from '#supervisor/agent/agent.ts'
import type { Host } from '#supervisor/host.ts'
import { linuxHost, type LinuxHostOptions } from '#supervisor/linux/host.ts'
import type { NodeSettings } from '#supervisor/settings.ts'
import { Supervisor, type SupervisorEvent, type SupervisorStatus } from '#supervisor/supervisor.ts'

import type { RecordEvent, Tools } from './events.ts'

export const ROOT_FLAG: Flag<string> = flag(
  string,
  '/',
  '`folder` below which its files are, for machines that share one',
)

export const METRICS_FLAG: Flag<string> = flag(
  string,
  '',
  '`host:port` on which /metrics and /healthz of the supervisor are asked for; empty: none',
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

/** Of everything that supervises. */
export const SUPERVISION_FLAGS: { readonly [K in keyof SupervisionFlags]: Flag<SupervisionFlags[K]> } = {
  'kubelet-health': flag(
    string,
    'http://127.0.0.1:10248/healthz',
    '`address` where kubelet says that it is well; none: not asked',
  ),
  'kube-proxy-health': flag(string, 'http://127.0.0.1:10256/livez', '`address` where kube-proxy does; none: not asked'),
  'metrics-bind-address': METRICS_FLAG,
  events: flag(bool, true, 'whether what is done is told as Events of the Node, by the credentials of the node'),
  logs: flag(oneOf('files', 'journal'), 'files', 'where what the three say goes: files or journal'),
  root: ROOT_FLAG,
}

/** What `node status` shows. */
export interface NodeStatus extends Partial<SupervisorStatus> {
  readonly agent?: AgentStatus | undefined
}

export function statusFile(root: string): string {
  return join(root, '/run/hyperkube/node/status.json')
}

export interface Supervision {
  readonly host: Host
  readonly createSupervisor: (settings: NodeSettings) => Supervisor
  /** Leaves what is known now for `node status`. */
  readonly leaveStatus: () => void
}

/** `agent` says what there is to say of it. */
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

/** What one system has is not loaded on the other. */
async function hostHere(
  { root, logs }: SupervisionFlags,
  seen: Omit<LinuxHostOptions, 'root' | 'logs'>,
): Promise<Host> {
  if (process.platform !== 'win32') return linuxHost({ ...seen, root, logs })
  const { windowsHost } = await import('#supervisor/windows/real/windows-host.ts')
  return windowsHost(seen)
}

/** One after the other, so that the last one is what was known last. */
function statusWriter(root: string, { log }: Pick<Tools, 'log'>, status: () => NodeStatus): () => void {
  let isAsked = false
  let last = Promise.resolve()
  const write = async (): Promise<void> => {
    isAsked = false
    await mkdir(dirname(statusFile(root)), { recursive: true, mode: 0o700 })
    const text = `${JSON.stringify(status(), undefined, 2)}\n`
    await writeFileAtomically(statusFile(root), text, { mode: 0o600 })
  }
  return () => {
    if (isAsked) return
    isAsked = true
    last = last.then(write).catch((error: unknown) => log.error(error, 'cannot leave the status'))
  }
}

/** The way to the API server is opened when there is something to tell, and anew when certificates may be others. */
function eventRecorder(
  host: Host,
  tools: Tools,
  closing: AsyncDisposableStack,
): (event: SupervisorEvent, node: string) => void {
  let way = new AsyncDisposableStack()
  closing.defer(() => way.disposeAsync())
  let opening: Promise<RecordEvent> | undefined
  const open = async (nodeName: string): Promise<RecordEvent> => {
    const { openNodeEvents } = await import('./events.ts')
    const node = (await host.environment.get('NODE_NAME')) ?? nodeName
    return openNodeEvents(tools, { kubeconfig: host.layout.nodeKubeconfig, node: node.toLowerCase() }, way)
  }
  return (event, nodeName) => {
    if (event.reason === 'SettingsChanged') {
      void way.disposeAsync()
      way = new AsyncDisposableStack()
      opening = undefined
    }
    opening ??= open(nodeName)
    opening.then(
      (record) => record(event),
      (error: unknown) => {
        opening = undefined
        tools.log.info('an Event is lost', { reason: (error as Error).message })
      },
    )
  }
}
