/** Finds the objects that an addon's old manifest has and its new one lacks, to delete them. Pure. */
import { parseYaml, splitYaml, stringifyYaml } from '#lib/yaml/yaml.ts'

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

const WORKLOADS: readonly string[] = ['DaemonSet', 'Deployment', 'StatefulSet', 'Job', 'CronJob', 'ReplicaSet', 'Pod']

/**
 * Manifests to delete in order, with only the identity of each object. Workloads come first, while they can still clean
 * up; then the others in reverse order. Empty if nothing was dropped.
 */
export function droppedDocuments(before: string, after: string): string[] {
  const wanted = documents(after)
  const gone = [...documents(before)].filter(([key]) => !wanted.has(key)).map(([, document]) => document)
  const runs = ({ kind }: Document): boolean => WORKLOADS.includes(kind)
  const parts = [gone.filter(runs), gone.filter((each) => !runs(each))]
  return parts.filter((part) => part.length > 0).map((part) => part.toReversed().map(bare).join('---\n'))
}

function bare({ apiVersion, kind, metadata: { name, namespace } }: Document): string {
  return stringifyYaml({ apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } })
}
