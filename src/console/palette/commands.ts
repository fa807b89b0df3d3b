/** The commands of the palette, and which of them fit the typed words. The words of k9s work: `po`, `ns web`. */
import type { Kind } from '../api/kinds.ts'
import type { SessionUser } from '../browser/session.ts'
import { type ClusterView, viewsOf } from '../pages/cluster-views.ts'
import { qualified, titleOf } from '../parts/kind-groups.ts'
import type { Page } from '../routing/location.ts'
import { parseSearch } from '../search/search-query.ts'
import { type ServerView, serverViewsFor } from '../server/server-views.ts'

export interface Command {
  readonly title: string
  /** Shown behind the title. */
  readonly hint: string
  /** Lower-case words that find the command, the best first. */
  readonly words: readonly string[]
  readonly action: Action
}

export type Action =
  | { readonly type: 'open'; readonly page: Page; readonly query?: Readonly<Record<string, string>> }
  | { readonly type: 'theme' }
  | { readonly type: 'keys' }

export interface Surroundings {
  readonly cluster: string | undefined
  readonly clusters: readonly { readonly name: string; readonly displayName: string }[]
  readonly kinds: readonly Kind[]
  readonly namespace: string
  /** Of a management server; null in `hyperkube up`. */
  readonly user: SessionUser | null
}

export function commandsOf({ cluster, clusters, kinds, namespace, user }: Surroundings): readonly Command[] {
  const ns = namespace === '' ? {} : { ns: namespace }
  return [
    ...(cluster === undefined ? [] : kinds.map((kind) => listCommand(cluster, kind, ns))),
    ...(cluster === undefined ? [] : [openCommand('Overview', { page: 'cluster', cluster })]),
    ...(cluster === undefined ? [] : viewsOf(kinds).map((view) => viewCommand(cluster, view, ns))),
    ...(user === null ? [] : serverViewsFor(user).map(serverViewCommand)),
    ...clusters.map(({ name, displayName }) => ({
      ...openCommand(displayName, { page: 'cluster', cluster: name }),
      hint: 'Cluster',
    })),
    openCommand('Clusters', { page: 'clusters' }),
    { title: 'Switch theme', hint: 't', words: ['theme', 'dark', 'light'], action: { type: 'theme' } },
    { title: 'Keyboard shortcuts', hint: '?', words: ['keys', 'help', 'shortcuts'], action: { type: 'keys' } },
  ]
}

function listCommand(cluster: string, kind: Kind, query: Readonly<Record<string, string>>): Command {
  const { shortNames, singular, plural } = kind
  return {
    title: titleOf(kind),
    hint: qualified(kind),
    words: [...shortNames, plural, singular, kind.kind.toLowerCase(), qualified(kind), titleOf(kind).toLowerCase()],
    action: { type: 'open', page: { page: 'list', cluster, kind }, query: kind.isNamespaced ? query : {} },
  }
}

function viewCommand(cluster: string, view: ClusterView, query: Readonly<Record<string, string>>): Command {
  const { name, title, words } = view
  const page = { page: 'cluster-view', cluster, view: name } as const
  return { title, hint: '', words: [title.toLowerCase(), name, ...words], action: { type: 'open', page, query } }
}

function serverViewCommand({ name, title, words }: ServerView): Command {
  const page = { page: 'server-view', view: name, item: '' } as const
  return { title, hint: 'Server', words: [title.toLowerCase(), name, ...words], action: { type: 'open', page } }
}

function openCommand(title: string, page: Page): Command {
  return { title, hint: '', words: [title.toLowerCase()], action: { type: 'open', page } }
}

/** Searches for the objects that the text names, in the cluster of the page and in all clusters of a server. */
export function searchCommands(text: string, { cluster, clusters, user }: Surroundings): readonly Command[] {
  const wanted = text.trim().replace(/^:/, '')
  if (parseSearch(wanted) === undefined) return []
  const title = `Search objects for “${wanted}”`
  const search = (page: Page, hint: string): Command => ({
    title,
    hint,
    words: [],
    action: { type: 'open', page, query: { q: wanted } },
  })
  const here = cluster ?? (user === null ? clusters[0]?.name : undefined)
  return [
    ...(here === undefined ? [] : [search({ page: 'cluster-view', cluster: here, view: 'search' }, 'This cluster')]),
    ...(user === null ? [] : [search({ page: 'server-view', view: 'search', item: '' }, 'All clusters')]),
  ]
}

/** `po web` lists the pods of namespace web. */
export function fitting(commands: readonly Command[], text: string, limit: number): readonly Command[] {
  const [word = '', namespace] = text.trim().toLowerCase().replace(/^:/, '').split(/\s+/)
  const ranked = commands
    .map((command) => ({ command, rank: rankOf(command, word) || rankOf(command, text.trim().toLowerCase()) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, limit)
  return ranked.map(({ command }) => (namespace === undefined ? command : inNamespace(command, namespace)))
}

/** 0: does not fit. Whole words fit better than beginnings, and beginnings better than parts. */
function rankOf({ words }: Command, text: string): number {
  if (text === '') return 1
  const ranks = words.map((word, at) => {
    if (word === text) return 100 - at
    if (word.startsWith(text)) return 50 - Math.min(20, word.length - text.length)
    return word.includes(text) ? 10 : isSubsequence(text, word) ? 2 : 0
  })
  return Math.max(0, ...ranks)
}

function isSubsequence(text: string, word: string): boolean {
  let at = 0
  for (const letter of word) if (letter === text[at]) at++
  return at === text.length
}

function inNamespace(command: Command, namespace: string): Command {
  const { action, hint } = command
  if (action.type !== 'open' || action.page.page !== 'list') return command
  return { ...command, hint: `${hint} in ${namespace}`, action: { ...action, query: { ns: namespace } } }
}
