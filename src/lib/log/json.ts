/** Formats log lines as component-base's JSON format (zap): one object per line, values as JSON, errors as text. */
import type { Line } from './line.ts'
import { errorText, jsonText, textOf } from './value.ts'

export function renderJson(line: Line): string {
  const { caller, error, level, message, name, own, values } = line
  let text = `{"ts":${line.nowMs}`
  if (name !== '') text += jsonPair('logger', name)
  text += jsonPair('caller', `${caller.path}:${caller.line}`) + jsonPair('msg', message)
  for (const [key, value] of values) text += jsonPair(key, value)
  if (level !== undefined) text += `,"v":${level}`
  for (const [key, value] of own) text += jsonPair(key, value)
  if (error !== undefined) text += jsonPair('err', error)
  return `${text}}\n`
}

/** `,"key":value`. A value that cannot be written says why under another key, as zap does. */
function jsonPair(key: string, value: unknown): string {
  try {
    return `,${JSON.stringify(key)}:${jsonValue(typeof value === 'function' ? value() : value)}`
  } catch (error) {
    const why = errorText(error).split('\n', 1)[0] as string
    return `,${JSON.stringify(`${key}Error`)}:${JSON.stringify(`PANIC=${why}`)}`
  }
}

function jsonValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return jsonText(value)
  if (value instanceof Error) return JSON.stringify(errorText(value))
  const text = 'toJSON' in value || value instanceof Uint8Array ? undefined : textOf(value)
  return text === undefined ? jsonText(value) : JSON.stringify(text)
}
