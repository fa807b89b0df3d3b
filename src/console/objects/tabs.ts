/** The tabs of an object's page, by its kind. Each has its name in the address. */

export type TabName = '' | 'yaml' | 'events' | 'related' | 'logs' | 'shell'

const WITH_LOGS = ['Pod', 'Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'ReplicationController']

export interface Tab {
  /** Empty: the first tab. */
  readonly name: TabName
  readonly title: string
  /** The key that opens it. */
  readonly key: string
  /** Undefined: objects of every kind have it. */
  readonly kinds?: readonly string[]
}

export const TABS: readonly Tab[] = [
  { name: '', title: 'Summary', key: 'd' },
  { name: 'yaml', title: 'YAML', key: 'y' },
  { name: 'logs', title: 'Logs', key: 'l', kinds: WITH_LOGS },
  { name: 'shell', title: 'Shell', key: 's', kinds: ['Pod'] },
  { name: 'events', title: 'Events', key: 'v' },
  { name: 'related', title: 'Related', key: 'm' },
]

export function tabsOf(kind: string): readonly Tab[] {
  return TABS.filter(({ kinds }) => kinds === undefined || kinds.includes(kind))
}
