/** One object. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { clusterPath, objectPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { Notice } from '../parts/notice.tsx'
import type { Page } from '../routing/location.ts'

export type ObjectPageProps = Omit<Extract<Page, { page: 'object' }>, 'page'>

export function ObjectPage({ cluster, kind, namespace, name }: ObjectPageProps): VNode {
  const [object, setObject] = useState<object>()
  const [error, setError] = useState<RequestError>()
  useEffect(() => {
    sendForJson<object>(clusterPath(cluster, objectPath(kind, { namespace, name }))).then(
      setObject,
      (failed: unknown) => setError(failed instanceof RequestError ? failed : undefined),
    )
  }, [])
  if (error !== undefined) return <Notice title={`${name} cannot be shown`} text={error.message} />
  return (
    <section class="page">
      <h1>{name}</h1>
      <pre>{object && JSON.stringify(object, undefined, 2)}</pre>
    </section>
  )
}
