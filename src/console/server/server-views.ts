/**
 * The views of the management server beside its clusters. The navigation, the palette and the addresses
 * `/ui/<name>/<item>` read this table. Each view is a file of the bundle that the browser loads when it is opened.
 */
import type { ComponentType } from 'preact'

import type { SessionUser } from '../browser/session.ts'
import type { ServerViewProps } from '../parts/view-props.ts'

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
    name: 'build',
    title: 'Build a cluster',
    words: ['create', 'machines', 'new'],
    isFor: (user) => has(user, 'add clusters'),
    load: async () => (await import('../builds/build-view.tsx')).BuildView,
  },
  {
    name: 'cluster-templates',
    title: 'Cluster templates',
    words: ['templates'],
    load: async () => (await import('../builds/templates-view.tsx')).TemplatesView,
  },
  {
    name: 'search',
    title: 'Search',
    words: ['find', 'name', 'label'],
    load: async () => (await import('../search/search-view.tsx')).SearchServer,
  },
  {
    name: 'users',
    title: 'Users',
    words: ['people', 'accounts'],
    isFor: (user) => has(user, 'manage users'),
    load: async () => (await import('../people/users-view.tsx')).UsersView,
  },
  {
    name: 'members',
    title: 'Members',
    words: ['rights', 'access'],
    load: async () => (await import('../people/members-view.tsx')).MembersView,
  },
  {
    name: 'roles',
    title: 'Roles',
    words: ['rights', 'rules', 'permissions'],
    load: async () => (await import('../people/roles-view.tsx')).RolesView,
  },
  {
    name: 'projects',
    title: 'Projects',
    words: ['namespaces'],
    load: async () => (await import('../people/projects-view.tsx')).ProjectsView,
  },
  {
    name: 'tokens',
    title: 'API tokens',
    words: ['keys'],
    load: async () => (await import('../people/tokens-view.tsx')).TokensView,
  },
  {
    name: 'account',
    title: 'Account',
    words: ['password', 'log out', 'logout', 'sessions'],
    load: async () => (await import('../people/account-view.tsx')).AccountView,
  },
  {
    name: 'settings',
    title: 'Settings',
    words: ['version', 'certificate', 'authority', 'providers'],
    load: async () => (await import('../people/settings-view.tsx')).SettingsView,
  },
]

function has({ rights = [] }: SessionUser, right: string): boolean {
  return rights.includes(right)
}

export function serverViewsFor(user: SessionUser): readonly ServerView[] {
  return SERVER_VIEWS.filter(({ isFor }) => isFor === undefined || isFor(user))
}
