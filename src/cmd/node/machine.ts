/** This machine as commands of `hyperkube node` see it: where its files are, what the supervisor leaves for others to read. */
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import type { Clock } from '#lib/clock.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { oneOf, string } from '#lib/flags/kinds.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { AgentStatus } from '#supervisor/agent/agent.ts'
import type { Host } from '#supervisor/host.ts'
import { linuxHost } from '#supervisor/linux/host.ts'
import type { NodeSettings } from '#supervisor/settings.ts'
import { Supervisor, type SupervisorStatus } from '#supervisor/supervisor.ts'
import { windowsHost } from '#supervisor/windows/real/windows-host.ts'

export const ROOT_FLAG: Flag<string> = flag(
  string,
  '/',
  '`folder` below which its files are, for machines that share one',
)

export const CONFIG_FILE = '/etc/kubernetes/node.yaml'

export interface SupervisionFlags {
  readonly 'kubelet-health': string
  readonly 'kube-proxy-health': string
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
  logs: flag(oneOf('files', 'journal'), 'files', 'where what the three say goes: files or journal'),
  root: ROOT_FLAG,
}

export interface NodeStatus extends SupervisorStatus {
  readonly agent?: AgentStatus
}

export function statusFile(root: string): string {
  return join(root, '/run/hyperkube/node/status.json')
}

interface Tools {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Supervision {
  readonly host: Host
  readonly createSupervisor: (settings: NodeSettings) => Supervisor
  /** Leaves what is known now for `node status`. */
  readonly leaveStatus: () => void
}

/** `agent` says what there is to say of it. */
export function superviseHere(
  flags: SupervisionFlags,
  { clock, random, log }: Tools,
  closing: DisposableStack,
  agent?: () => AgentStatus,
): Supervision {
  const http = createHttpClient({ clock })
  closing.defer(() => http.close())
  let supervisor: Supervisor | undefined
  const seen = { clock, http, say: (text: string) => log.info(text), ended: () => supervisor?.wake() }
  const host =
    process.platform === 'win32' ? windowsHost(seen) : linuxHost({ ...seen, root: flags.root, logs: flags.logs })
  const leaveStatus = (): void => {
    const status = { ...supervisor?.status, ...(agent && { agent: agent() }) }
    const text = `${JSON.stringify(status, undefined, 2)}\n`
    void writeFileAtomically(statusFile(flags.root), text, { mode: 0o600 }).catch((error: unknown) =>
      log.error(error, 'cannot leave the status'),
    )
  }
  const createSupervisor = (settings: NodeSettings): Supervisor => {
    supervisor = new Supervisor({
      host,
      random,
      settings,
      health: { kubelet: flags['kubelet-health'], 'kube-proxy': flags['kube-proxy-health'] },
      report({ reason, message }) {
        log.info(message, { reason })
        leaveStatus()
      },
    })
    return supervisor
  }
  return { host, createSupervisor, leaveStatus }
}
