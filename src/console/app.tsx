/** Chooses the page: log-in without a session, otherwise the page of the address inside the frame. */
import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { RequestError } from './api/request.ts'
import { loadSession, session } from './browser/session.ts'
import { Frame } from './frame/frame.tsx'
import { ClusterPage } from './pages/cluster-page.tsx'
import { CLUSTER_VIEWS } from './pages/cluster-views.ts'
import { ClustersPage } from './pages/clusters-page.tsx'
import { ListPage } from './pages/list-page.tsx'
import type { ObjectPageProps } from './pages/object-page.tsx'
import { ViewPage } from './pages/view-page.tsx'
import { Shortcuts } from './palette/shortcuts.tsx'
import { Lazy } from './parts/lazy.tsx'
import { Notice } from './parts/notice.tsx'
import type { Page } from './routing/location.ts'
import { location } from './routing/router.tsx'
import { ExpiredSession } from './server/expired-session.tsx'
import { LoginPage } from './server/login-page.tsx'
import { SERVER_VIEWS } from './server/server-views.ts'

export function App(): VNode {
  const [error, setError] = useState<RequestError>()
  const load = (): void => {
    setError(undefined)
    loadSession().catch((failed: unknown) => {
      if (!(failed instanceof RequestError)) throw failed
      setError(failed)
    })
  }
  useEffect(load, [])
  const loaded = session.value
  if (error !== undefined) return <Notice title="The server cannot be reached" text={error.message} retry={load} />
  if (loaded === undefined) return <p class="loading">Loading …</p>
  if (loaded.user === null || loaded.user.mustChangePassword === true)
    return loaded.mode === 'many-clusters' ? <LoginPage /> : <NoSession />
  return (
    <>
      <Frame>{contentOf(location.value.page)}</Frame>
      <Shortcuts />
      <ExpiredSession />
    </>
  )
}

/** A cluster of `hyperkube up` has no users: its link logs in. */
function NoSession(): VNode {
  return (
    <Notice title="This link is no longer valid" text="Each link logs in once.">
      <p class="notice-text">
        <code>hyperkube status</code> prints a new link to the console.
      </p>
    </Notice>
  )
}

function contentOf(page: Page): VNode {
  switch (page.page) {
    case 'cluster':
      return <ClusterPage key={page.cluster} cluster={page.cluster} />
    case 'list':
      return <ListPage key={`${page.cluster}/${page.kind.group}/${page.kind.plural}`} {...page} />
    case 'object':
      return <Lazy key={keyOf(page)} load={loadObjectPage} props={page} />
    case 'cluster-view':
      return <ViewPage key={`${page.cluster}/${page.view}`} views={CLUSTER_VIEWS} name={page.view} props={page} />
    case 'clusters':
      return <ClustersPage />
    case 'server-view':
      return <ViewPage key={page.view} views={SERVER_VIEWS} name={page.view} props={page} />
  }
}

function keyOf({ cluster, kind, namespace, name }: ObjectPageProps): string {
  return [cluster, kind.group, kind.plural, namespace, name].join('/')
}

/** Objects are opened from lists: the first page does not wait for their part of the program. */
async function loadObjectPage(): Promise<ComponentType<ObjectPageProps>> {
  const { ObjectPage } = await import('./pages/object-page.tsx')
  return ObjectPage
}
