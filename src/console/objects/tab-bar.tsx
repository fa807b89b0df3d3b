/** The tabs of an object as links: the tab is part of the address. Each has a key. */
import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'

import { isTyping } from '../browser/is-typing.ts'
import type { Page } from '../routing/location.ts'
import { go, Link, location } from '../routing/router.tsx'
import { type Tab, tabsOf } from './tabs.ts'

type ObjectAddress = Omit<Extract<Page, { page: 'object' }>, 'page'>

export interface TabBarProps extends ObjectAddress {
  /** The kind if it is one of Kubernetes; empty for others. */
  readonly objectKind: string
}

export function TabBar({ cluster, kind, namespace, name, tab, objectKind }: TabBarProps): VNode {
  const { ns = '' } = location.value.query
  const tabs = tabsOf(objectKind)
  const pageOf = (one: Tab): Page => ({ page: 'object', cluster, kind, namespace, name, tab: one.name })
  useEffect(() => followKeys(tabs, (one) => go(pageOf(one), { ns })), [cluster, kind, namespace, name, objectKind, ns])
  return (
    <nav class="tabs" aria-label="Parts of the object">
      {tabs.map((one) => (
        <Link
          key={one.name}
          to={pageOf(one)}
          query={{ ns }}
          current={one.name === tab}
          aria-keyshortcuts={one.key}
          title={`Key: ${one.key}`}
        >
          {one.title}
        </Link>
      ))}
    </nav>
  )
}

/** Returns a function that ends it. */
function followKeys(tabs: readonly Tab[], open: (tab: Tab) => void): () => void {
  let before = ''
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key, ctrlKey, metaKey, altKey, target, defaultPrevented } = event
    // `g s` leads to the Services.
    const isSecond = before === 'g'
    before = key
    if (ctrlKey || metaKey || altKey || isSecond || defaultPrevented || isTyping(target)) return
    const tab = tabs.find((one) => one.key === key)
    if (tab === undefined) return
    event.preventDefault()
    open(tab)
  }
  addEventListener('keydown', onKeyDown)
  return () => removeEventListener('keydown', onKeyDown)
}
