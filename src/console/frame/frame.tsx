/** The frame of every page: the bar with cluster, namespace and theme, and the navigation by kinds. */
import type { ComponentChildren, VNode } from 'preact'

import { session } from '../browser/session.ts'
import { switchTheme, theme } from '../browser/theme.ts'
import { Link, location } from '../routing/router.tsx'
import { Navigation, ServerNavigation } from './navigation.tsx'

export function Frame({ children }: { readonly children: ComponentChildren }): VNode {
  const { page } = location.value
  const cluster = 'cluster' in page ? page.cluster : undefined
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="bar">
        <Link to={{ page: 'clusters' }} class="brand">
          <span aria-hidden="true" class="brand-mark" />
          hyperkube
        </Link>
        {cluster !== undefined && (
          <Link to={{ page: 'cluster', cluster }} class="bar-cluster">
            {displayName(cluster)}
          </Link>
        )}
        <span class="bar-space" />
        <button type="button" class="quiet" onClick={switchTheme} title="Switch theme">
          Theme: {theme.value}
        </button>
        <User />
      </header>
      <nav class="side" aria-label={cluster === undefined ? 'Pages' : 'Kinds'}>
        {cluster === undefined ? <ServerNavigation /> : <Navigation cluster={cluster} />}
      </nav>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

/** Users of a management server have a page for their account. */
function User(): VNode {
  const { mode, user } = session.value ?? {}
  const name = <bdi>{user?.displayName ?? user?.username ?? ''}</bdi>
  if (mode !== 'many-clusters') return <span class="bar-user">{name}</span>
  return (
    <Link to={{ page: 'server-view', view: 'account', item: '' }} class="bar-user" title="Your account">
      {name}
    </Link>
  )
}

function displayName(cluster: string): string {
  return session.value?.clusters?.find(({ name }) => name === cluster)?.displayName ?? cluster
}
