/** Sample objects for benchmarks: ConfigMaps of about 1 KiB, half of it incompressible, like real objects. */
import { createHash } from 'node:crypto'

import { encodeRequest } from './http-load.ts'

const NOISE_LENGTH = 256
/** The same in every run; made once, because who asks shares the processors with who answers. */
const NOISE = Array.from({ length: 512 }, (_, at) => createHash('sha512').update(`${at}`).digest('hex')).join('')
let noiseAt = 0

export const collectionOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`

function configMap(name: string): string {
  noiseAt = (noiseAt + 37) % (NOISE.length - NOISE_LENGTH)
  return JSON.stringify({
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name, labels: { app: 'bench' } },
    data: { noise: NOISE.slice(noiseAt, noiseAt + NOISE_LENGTH), text: 'configuration '.repeat(16) },
  })
}

/** The request that creates one. */
export function post(namespace: string, name: string): Buffer {
  return encodeRequest({ method: 'POST', path: collectionOf(namespace), body: configMap(name) })
}
