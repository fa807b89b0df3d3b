/** Files of a volume that get in each other's way: the same path twice, or one inside of another. */
import type { PodCertificateProjection, Volume, VolumeProjection } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { trimEndOf } from '#lib/trim.ts'

/** Files before it that a file is compared with: beyond them it would only cost time, all pairs of it. */
const MAX_COMPARED = 256

interface File {
  readonly path: string
  /** Where it comes from, when the volume has several sources. */
  readonly source: string
}

/** Warnings about the volumes that are made of files. */
export function overlapWarnings(volumes: readonly Volume[] = []): string[] {
  return volumes.flatMap(({ name, configMap, secret, downwardAPI, projected }) => {
    const warnings = (of: string, files: readonly File[]): string[] =>
      overlapsOf(files).map((text) => `volume ${goQuote(name)} (${of}): overlapping paths: ${text}`)
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

function overlapsOf(files: readonly File[]): string[] {
  const seen: File[] = []
  return files.flatMap((given) => {
    const file = { ...given, path: trimEndOf(given.path, '/') }
    const overlaps = seen.filter(({ path }) => isWithin(path, file.path) || isWithin(file.path, path))
    if (seen.length < MAX_COMPARED) seen.push(file)
    return overlaps.map((other) => `${fileText(file)} with ${fileText(other)}`)
  })
}

function isWithin(inner: string, outer: string): boolean {
  return inner !== '' && outer !== '' && `${inner}/`.startsWith(`${outer}/`)
}

function fileText({ path, source }: File): string {
  return source === '' ? goQuote(path) : `${goQuote(path)} (${source})`
}
