/** Records actions of the supervisor as Events of its Node, with the credentials of the node. */
import { EventRecorder } from '#client/events/event-recorder.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { Invocation } from '#lib/program.ts'
import type { SupervisorEvent } from '#supervisor/supervisor.ts'

import { openNodeClient } from '../node-client.ts'

export type Tools = Omit<Invocation<FlagGroups>, 'flags'>

/** Does not block the caller. */
export type RecordEvent = (event: SupervisorEvent) => void

const COMPONENT = 'hyperkube-node'

const TYPES: Readonly<Record<SupervisorEvent['reason'], 'Normal' | 'Warning'>> = {
  Missing: 'Normal',
  Started: 'Normal',
  SettingsChanged: 'Normal',
  Unhealthy: 'Warning',
  Retry: 'Warning',
  Crash: 'Warning',
}

/** Throws ProgramError for unusable credentials. */
export async function openNodeEvents(
  tools: Tools,
  { kubeconfig, node }: { readonly kubeconfig: string; readonly node: string },
  closing: AsyncDisposableStack,
): Promise<RecordEvent> {
  const client = await openNodeClient(tools, closing, { name: COMPONENT, where: { kubeconfig, master: '' } })
  const recorder = new EventRecorder({
    client,
    source: { component: COMPONENT, host: node },
    onError: (error) => tools.log.info('Failed to record event', { reason: (error as Error).message }),
  })
  const about = { kind: 'Node', name: node, apiVersion: 'v1' }
  return ({ reason, message }) => recorder.record(about, { type: TYPES[reason], reason, message })
}
