/** Finds conflicting files of a volume: two files with the same path, or one path inside of another. */
import type { PodCertificateProjection, Volume, VolumeProjection } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { trimEndOf } from '#lib/trim.ts'

/** The maximum number of reported pairs per pod, because n equal paths overlap in n² / 2 pairs. */
const MAX_PAIRS = 10_000

interface File {
  readonly path: string
  /** The source, if the volume has several. */
  readonly source: string
}

/** Warnings about volumes that consist of files. */
export function overlapWarnings(volumes: readonly Volume[] = []): string[] {
  const budget = { pairs: MAX_PAIRS }
  return volumes.flatMap(({ name, configMap, secret, downwardAPI, projected }) => {
    const warnings = (of: string, files: readonly File[]): string[] =>
      overlapsOf(files, budget).map((text) => `volume ${goQuote(name)} (${of}): overlapping paths: ${text}`)
    return [
      ...warnings(`ConfigMap ${goQuote(configMap?.name ?? '')}`, filesOf(configMap?.items, '')),
      ...warnings(`Secret ${goQuote(secret?.secretName ?? '')}`, filesOf(secret?.items, '')),
      ...warnings('DownwardAPI', filesOf(downwardAPI?.items, '')),
      ...(projected?.sources ?? [])
        .filter((source) => Object.keys(source).length === 0)
        .map(() => `volume ${goQuote(name)} (Projected) has no sources provided`),
      ...warnings('Projected', (projected?.sources ?? []).flatMap(projectedFiles)),
    ]
  })
}

function filesOf(items: readonly { readonly path: string }[] = [], source: string): File[] {
  return items.map(({ path }) => ({ path, source }))
}

/** The first existing source of each projection. */
function projectedFiles(projection: VolumeProjection): File[] {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = projection
  if (configMap?.items !== undefined) return filesOf(configMap.items, `ConfigMap ${goQuote(configMap.name ?? '')}`)
  if (secret?.items !== undefined) return filesOf(secret.items, `Secret ${goQuote(secret.name ?? '')}`)
  if (downwardAPI?.items !== undefined) return filesOf(downwardAPI.items, 'DownwardAPI')
  if (serviceAccountToken !== undefined) return filesOf([serviceAccountToken], 'ServiceAccountToken')
  if (clusterTrustBundle !== undefined) {
    const name = clusterTrustBundle.name ?? clusterTrustBundle.signerName ?? ''
    return filesOf([clusterTrustBundle], `ClusterTrustBundle ${goQuote(name)}`)
  }
  return certificateFiles(podCertificate)
}

function certificateFiles(certificate: PodCertificateProjection | undefined): File[] {
  const file = (path: string | undefined, what: string): File[] =>
    (path ?? '') === '' ? [] : [{ path: path ?? '', source: `PodCertificate ${what}` }]
  return [
    ...file(certificate?.certificateChainPath, 'chain'),
    ...file(certificate?.keyPath, 'key'),
    ...file(certificate?.credentialBundlePath, 'credential bundle'),
  ]
}

/** Each file with the earlier files that it overlaps. Sorted by path, the files inside of another directly follow it. */
function overlapsOf(given: readonly File[], budget: { pairs: number }): string[] {
  const files = given.map(({ source, path: written }, at): IndexedFile => {
    const path = trimEndOf(written, '/')
    return { source, path, at, sortKey: path.replaceAll('/', '\0') }
  })
  const pairs: { readonly later: IndexedFile; readonly earlier: IndexedFile }[] = []
  const outer: IndexedFile[] = []
  for (const file of files.filter(({ path }) => path !== '').sort(compareByPath)) {
    while (outer.length > 0 && !isWithin(file.path, outer.at(-1)?.path ?? '')) outer.pop()
    for (const other of outer.slice(0, budget.pairs)) {
      pairs.push(other.at < file.at ? { later: file, earlier: other } : { later: other, earlier: file })
    }
    budget.pairs = Math.max(0, budget.pairs - outer.length)
    outer.push(file)
  }
  pairs.sort((one, other) => one.later.at - other.later.at || one.earlier.at - other.earlier.at)
  return pairs.map(({ later, earlier }) => `${fileText(later)} with ${fileText(earlier)}`)
}

interface IndexedFile extends File {
  readonly at: number
  /** The path with a slash that sorts before all other characters: no path comes between a directory and its files. */
  readonly sortKey: string
}

function compareByPath(one: IndexedFile, other: IndexedFile): number {
  if (one.sortKey === other.sortKey) return one.at - other.at
  return one.sortKey < other.sortKey ? -1 : 1
}

function isWithin(inner: string, outer: string): boolean {
  if (!inner.startsWith(outer)) return false
  return inner.length === outer.length || inner[outer.length] === '/'
}

function fileText({ path, source }: File): string {
  return source === '' ? goQuote(path) : `${goQuote(path)} (${source})`
}
