/** Reads the OpenAPI v3 document of a group and version from a cluster, once. */
import { clusterPath } from '../api/kinds.ts'
import { sendForJson } from '../api/request.ts'
import type { Schemas } from './schema.ts'

interface Index {
  readonly paths?: Readonly<Record<string, { readonly serverRelativeURL: string }>>
}

interface OpenApiDocument {
  readonly components?: { readonly schemas?: Schemas }
}

const indexes = new Map<string, Promise<Index>>()
const documents = new Map<string, Promise<Schemas>>()

/** Rejects with RequestError. No schema: the cluster has none for this version. */
export async function loadSchemas(cluster: string, apiVersion: string): Promise<Schemas> {
  const index = await once(indexes, cluster, () => sendForJson<Index>(clusterPath(cluster, '/openapi/v3')))
  const url = index.paths?.[apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`]?.serverRelativeURL
  if (url === undefined) return {}
  return once(documents, `${cluster} ${url}`, async () => {
    const { components } = await sendForJson<OpenApiDocument>(clusterPath(cluster, url))
    return components?.schemas ?? {}
  })
}

/** A failed attempt is not remembered. */
function once<T>(loaded: Map<string, Promise<T>>, key: string, load: () => Promise<T>): Promise<T> {
  const known = loaded.get(key)
  if (known !== undefined) return known
  const loading = load()
  loaded.set(key, loading)
  loading.catch(() => loaded.delete(key))
  return loading
}
