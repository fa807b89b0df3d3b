/** The tabs of an object as links: the tab is part of the address. */
import type { VNode } from 'preact'

import type { Page } from '../routing/location.ts'
import { Link, location } from '../routing/router.tsx'
import { tabsOf } from './tabs.ts'

export interface TabBarProps extends Omit<Extract<Page, { page: 'object' }>, 'page'> {
  /** The name of the kind. */
  readonly objectKind: string
}

export function TabBar({ cluster, kind, namespace, name, tab, objectKind }: TabBarProps): VNode {
  const { ns = '' } = location.value.query
  return (
    <nav class="tabs" aria-label="Parts of the object">
      {tabsOf(objectKind).map((one) => (
        <Link
          key={one.name}
          to={{ page: 'object', cluster, kind, namespace, name, tab: one.name }}
          query={{ ns }}
          current={one.name === tab}
        >
          {one.title}
        </Link>
      ))}
    </nav>
  )
}
