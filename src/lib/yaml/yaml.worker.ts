/** The entry point of the worker thread that parses YAML to JSON (see reader.ts). */
import { parentPort } from 'node:worker_threads'

import { stringifyJson } from '../json/json.ts'
import { YamlError } from './error.ts'
import type { FromYamlThread } from './reader.ts'
import { parseYaml } from './yaml.ts'

const port = parentPort

port?.on('message', (text: Uint8Array) => port.postMessage(answerTo(text)))

function answerTo(text: Uint8Array): FromYamlThread {
  const duplicates: string[] = []
  try {
    const value = parseYaml(Buffer.from(text.buffer, text.byteOffset, text.byteLength), { duplicates })
    return { json: stringifyJson(value), duplicates }
  } catch (cause) {
    const { message } = cause as Error
    return { error: { code: cause instanceof YamlError ? cause.code : 'limit', message } }
  }
}
