/** Chooses the page: log-in without a session, otherwise the page of the address inside the frame. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { RequestError } from './api/request.ts'
import { loadSession, session } from './browser/session.ts'
import { ClusterPage } from './pages/cluster-page.tsx'
import { ClustersPage } from './pages/clusters-page.tsx'
import { ListPage } from './pages/list-page.tsx'
import { ObjectPage } from './pages/object-page.tsx'
import { Frame } from './parts/frame.tsx'
import { Notice } from './parts/notice.tsx'
import type { Page } from './routing/location.ts'
import { location } from './routing/router.tsx'

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
  return <Frame>{contentOf(location.value.page)}</Frame>
}

function contentOf(page: Page): VNode {
  switch (page.page) {
    case 'cluster':
      return <ClusterPage key={page.cluster} cluster={page.cluster} />
    case 'list':
      return <ListPage key={`${page.cluster}/${page.kind.group}/${page.kind.plural}`} {...page} />
    case 'object':
      return <ObjectPage key={`${page.cluster}/${page.kind.plural}/${page.namespace}/${page.name}`} {...page} />
    case 'clusters':
      return <ClustersPage />
    case 'server':
      return <Notice title="This page does not exist" text={`There is no page "${page.name}".`} />
  }
}
