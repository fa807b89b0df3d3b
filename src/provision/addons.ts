/** What of a manifest is no longer in the next one. Pure. */
import { parseYaml, splitYaml, stringifyYaml } from '#lib/yaml.ts'

interface Document {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name?: string; readonly namespace?: string }
}

function documents(manifest: string): Map<string, Document> {
  const found = splitYaml(manifest)
    .map((text) => parseYaml(text) as Document | null)
    .filter((each): each is Document => each !== null && typeof each === 'object')
  return new Map(found.map((each) => [keyOf(each), each]))
}

function keyOf({ apiVersion, kind, metadata }: Document): string {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return [group, kind, metadata?.namespace ?? '', metadata?.name ?? ''].join(' ')
}

/** Each with its name and nothing else: enough to delete it. Empty: nothing is missing. */
export function droppedDocuments(before: string, after: string): string {
  const wanted = documents(after)
  const gone = [...documents(before)].filter(([key]) => !wanted.has(key))
  const bare = gone.map(
    ([
      ,
      {
        apiVersion,
        kind,
        metadata: { name, namespace },
      },
    ]) => stringifyYaml({ apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } }),
  )
  return bare.join('---\n')
}
