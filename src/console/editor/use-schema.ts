/** The schema of a kind in a cluster, for completion and checks. */
import { useEffect, useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { loadSchemas } from './load-schema.ts'
import { schemaOfKind } from './schema.ts'
import type { KindSchema } from './suggest.ts'

/** Undefined while it is loading, or if the cluster gives none: editing works without. */
export function useSchema(cluster: string, apiVersion: string, kind: string): KindSchema | undefined {
  const [found, setFound] = useState<KindSchema>()
  useEffect(() => {
    let isOver = false
    setFound(undefined)
    if (apiVersion === '' || kind === '') return undefined
    loadSchemas(cluster, apiVersion).then(
      (schemas) => {
        const root = schemaOfKind(schemas, apiVersion, kind)
        return isOver || root === undefined ? undefined : setFound({ schemas, root })
      },
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error
      },
    )
    return () => {
      isOver = true
    }
  }, [cluster, apiVersion, kind])
  return found
}
