/**
 * The views of the management server beside its clusters. The navigation, the palette and the addresses
 * `/ui/<name>/<item>` read this table. Each view is a file of the bundle that the browser loads when it is opened.
 */
import type { ComponentType } from 'preact'

import type { SessionUser } from '../browser/session.ts'

export interface ServerViewProps {
  /** The second part of the address: the name of one user, for example. Empty: all. */
  readonly item: string
}

export interface ServerView {
  readonly name: string
  readonly title: string
  /** Other lower-case words by which the palette finds it. */
  readonly words: readonly string[]
  /** Default: all users. The server decides what they get. */
  readonly isFor?: (user: SessionUser) => boolean
  /** Its component shows the title. */
  readonly hasOwnHead?: boolean
  readonly load: () => Promise<ComponentType<ServerViewProps>>
}

export const SERVER_VIEWS: readonly ServerView[] = [
  {
    name: 'clusters',
    title: 'Cluster',
    words: [],
    // It needs the name of a cluster.
    isFor: () => false,
    hasOwnHead: true,
    load: async () => (await import('./cluster-page.tsx')).ManagedClusterPage,
  },
  {
    name: 'search',
    title: 'Search',
    words: ['find', 'name', 'label'],
    load: async () => (await import('../search/search-view.tsx')).SearchServer,
  },
]

export function serverViewsFor(user: SessionUser): readonly ServerView[] {
  return SERVER_VIEWS.filter(({ isFor }) => isFor === undefined || isFor(user))
}
