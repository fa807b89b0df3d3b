/**
 * The views of a cluster beside its overview and its lists. The navigation, the palette and the addresses
 * `/ui/c/<cluster>/<name>` read this table. Each view is a file of the bundle that the browser loads when it is opened.
 */
import type { ComponentType } from 'preact'

import type { Kind } from '../api/kinds.ts'
import { session } from '../browser/session.ts'
import type { ClusterViewProps } from '../parts/view-props.ts'

export interface ClusterView {
  /** The last part of its address. */
  readonly name: string
  readonly title: string
  /** Other lower-case words by which the palette finds it. */
  readonly words: readonly string[]
  /** Default: every cluster has it. */
  readonly isIn?: (kinds: readonly Kind[]) => boolean
  readonly load: () => Promise<ComponentType<ClusterViewProps>>
}

export const CLUSTER_VIEWS: readonly ClusterView[] = [
  {
    name: 'search',
    title: 'Search',
    words: ['find', 'name', 'label'],
    load: async () => (await import('../search/search-view.tsx')).SearchCluster,
  },
  {
    name: 'events',
    title: 'Event time line',
    words: ['timeline', 'warnings', 'history'],
    load: async () => (await import('../timeline/cluster-events.tsx')).ClusterEvents,
  },
  {
    name: 'forwards',
    title: 'Port forwards',
    words: ['ports', 'tunnel'],
    // A management server runs on another machine than the browser.
    isIn: () => session.value?.mode === 'one-cluster',
    load: async () => (await import('../forward/forwards-view.tsx')).ForwardsView,
  },
  {
    name: 'create',
    title: 'Create',
    words: ['apply', 'new', 'yaml'],
    load: async () => (await import('../editor/create-view.tsx')).CreateView,
  },
  {
    name: 'rights',
    title: 'Who may do what',
    words: ['rbac', 'permissions', 'access', 'can-i', 'roles'],
    load: async () => (await import('../rights/rights-view.tsx')).RightsView,
  },
  {
    name: 'certificates',
    title: 'Certificates',
    words: ['tls', 'x509', 'expiry', 'authorities'],
    load: async () => (await import('../certificates/certificates-view.tsx')).CertificatesView,
  },
]

export function viewsOf(kinds: readonly Kind[]): readonly ClusterView[] {
  return CLUSTER_VIEWS.filter(({ isIn }) => isIn === undefined || isIn(kinds))
}
