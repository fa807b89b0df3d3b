/** Selects the files of a volume from a ConfigMap or Secret, which may be optional. */
import type { KeyToPath, Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'

import { configMapFiles, secretFiles } from './payloads.ts'
import type { Payload, VolumeSources } from './volume-plugin.ts'

export interface ContentRequest {
  readonly pod: Pod
  readonly sources: VolumeSources
  readonly mode: number
}

export interface ContentSource {
  readonly name?: string | undefined
  readonly optional?: boolean | undefined
  readonly items?: readonly KeyToPath[] | undefined
}

export async function fromConfigMap({ pod, sources, mode }: ContentRequest, source: ContentSource): Promise<Payload> {
  const { name = '', optional: isOptional = false, items } = source
  const found = await sources.configMap(pod, name)
  if (found === undefined && !isOptional) throw new Error(`configmap ${goQuote(name)} not found`)
  return configMapFiles(found, { items, mode, isOptional })
}

export async function fromSecret({ pod, sources, mode }: ContentRequest, source: ContentSource): Promise<Payload> {
  const { name = '', optional: isOptional = false, items } = source
  const found = await sources.secret(pod, name)
  if (found === undefined && !isOptional) throw new Error(`secret ${goQuote(name)} not found`)
  return secretFiles(found, { items, mode, isOptional })
}
