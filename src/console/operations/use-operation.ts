/** One whole Operation, read again whenever the watch of its cluster says that it has changed. */
import { useEffect, useState } from 'preact/hooks'

import { RequestError, sendForJson } from '../api/request.ts'
import { operationPath } from './operation-requests.ts'
import type { Operation } from './operations.ts'

export interface LoadedOperation {
  readonly operation: Operation | undefined
  readonly error: RequestError | undefined
}

/** `version`: of the object that the watch sent last. */
export function useOperation(cluster: string, name: string, version: string): LoadedOperation {
  const [loaded, setLoaded] = useState<LoadedOperation>({ operation: undefined, error: undefined })
  useEffect(() => {
    const stop = new AbortController()
    sendForJson<Operation>(operationPath(cluster, name), { signal: stop.signal }).then(
      (operation) => setLoaded({ operation, error: undefined }),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof RequestError)) throw error
        setLoaded(({ operation }) => ({ operation, error }))
      },
    )
    return () => stop.abort()
  }, [cluster, name, version])
  return loaded.operation?.metadata.name === name || loaded.error !== undefined
    ? loaded
    : { operation: undefined, error: undefined }
}
