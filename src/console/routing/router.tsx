/** The address that the browser shows, as a signal, and links that change it without loading a page. */
import { signal, type ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'

import { formatLocation, type Location, type Page, parseLocation } from './location.ts'

const current = signal(read())

export const location: ReadonlySignal<Location> = current

function read(): Location {
  return parseLocation(globalThis.location.pathname, globalThis.location.search)
}

/** Handles the back and forward buttons. */
export function startRouter(): void {
  addEventListener('popstate', () => (current.value = read()))
}

export function go(page: Page, query: Readonly<Record<string, string>> = {}): void {
  history.pushState(undefined, '', formatLocation({ page, query }))
  current.value = read()
}

/** Shows another page in place of this one: the back button skips this one. */
export function replacePage(page: Page): void {
  history.replaceState(undefined, '', formatLocation({ page, query: {} }))
  current.value = read()
}

/** Changes parts of the query. The back button skips these steps. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const { page, query } = current.value
  history.replaceState(undefined, '', formatLocation({ page, query: { ...query, ...changes } }))
  current.value = read()
}

export interface LinkProps {
  readonly to: Page
  readonly query?: Readonly<Record<string, string>>
  readonly children?: ComponentChildren
  readonly class?: string
  readonly current?: boolean
  readonly title?: string
  readonly 'aria-keyshortcuts'?: string
}

export function Link({ to, query = {}, children, current: isCurrent = false, ...rest }: LinkProps): VNode {
  const follow = (event: MouseEvent): void => {
    // Other clicks open a tab or a window.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(to, query)
  }
  return (
    <a
      {...rest}
      href={formatLocation({ page: to, query })}
      onClick={follow}
      aria-current={isCurrent ? 'page' : undefined}
    >
      {children}
    </a>
  )
}
