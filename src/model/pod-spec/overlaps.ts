/** Files of a volume that get in each other's way: the same path twice, or one inside of another. */
import type { PodCertificateProjection, Volume, VolumeProjection } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { trimEndOf } from '#lib/trim.ts'

/** Pairs of files that are compared for one pod: beyond them it would only cost time. Real pods have some hundred. */
const MAX_PAIRS = 100_000

interface File {
  readonly path: string
  /** Where it comes from, when the volume has several sources. */
  readonly source: string
}

/** Warnings about the volumes that are made of files. */
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

/** Of each projection the first source that is there. */
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

function overlapsOf(files: readonly File[], budget: { pairs: number }): string[] {
  const earlier: File[] = []
  return files.flatMap((given) => {
    const file = { ...given, path: trimEndOf(given.path, '/') }
    budget.pairs -= earlier.length
    if (budget.pairs < 0) return []
    const overlaps = earlier.filter(({ path }) => isWithin(path, file.path) || isWithin(file.path, path))
    earlier.push(file)
    return overlaps.map((other) => `${fileText(file)} with ${fileText(other)}`)
  })
}

function isWithin(inner: string, outer: string): boolean {
  if (inner === '' || outer === '' || !inner.startsWith(outer)) return false
  return inner.length === outer.length || inner[outer.length] === '/'
}

function fileText({ path, source }: File): string {
  return source === '' ? goQuote(path) : `${goQuote(path)} (${source})`
}
