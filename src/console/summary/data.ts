/** Reads the keys of ConfigMaps and Secrets. */
import type { ConfigMap, Secret } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

export interface DataEntry {
  readonly key: string
  readonly isSecret: boolean
  readonly bytes: number
  /** Decodes the value when it is asked for. Undefined for bytes that are no text. */
  text(): string | undefined
}

export function dataEntries(object: KubeObject): readonly DataEntry[] {
  if (object.kind === 'Secret') {
    return Object.entries((object as Secret).data ?? {}).map(([key, base64]) => encoded(key, base64, true))
  }
  const { data = {}, binaryData = {} } = object as ConfigMap
  return [
    ...Object.entries(data).map(([key, value]) => ({
      key,
      isSecret: false,
      bytes: new TextEncoder().encode(value).length,
      text: () => value,
    })),
    ...Object.entries(binaryData).map(([key, base64]) => encoded(key, base64, false)),
  ]
}

function encoded(key: string, base64: string, isSecret: boolean): DataEntry {
  const padding = /=*$/.exec(base64)?.[0].length ?? 0
  return {
    key,
    isSecret,
    bytes: Math.max(0, Math.floor((base64.length * 3) / 4) - padding),
    text: () => decode(base64),
  }
}

function decode(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.codePointAt(0) ?? 0)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Annotations of an object, without the copy of a Secret's values that `kubectl apply` keeps in one of them. */
export function shownAnnotations({ kind, metadata }: KubeObject): Readonly<Record<string, string>> {
  const { annotations = {} } = metadata
  if (kind !== 'Secret' || annotations[LAST_APPLIED] === undefined) return annotations
  return { ...annotations, [LAST_APPLIED]: 'Hidden: it repeats the values of the Secret' }
}
