/**
 * Formats log lines as klog does (k8s.io/klog/v2, textlogger): `I1115 02:05:12.123456 42 file.ts:12] "Message"
 * key="value"`. Strings are quoted as Go does, those of several lines are indented below the key, everything else is
 * JSON.
 */
import { isUtf8 } from 'node:buffer'

import type { Line } from './line.ts'
import { errorText, jsonText, textOf } from './value.ts'

/** Lines with the process id in their head. */
export function createTextRenderer(pid: number): (line: Line) => string {
  const stamp = createStamp()
  const process = String(pid).padStart(7, ' ')
  return (line) => {
    const { caller, error, message, name, own, values } = line
    const severity = line.level === undefined ? 'E' : 'I'
    let text = `${severity}${stamp(line.nowMs)} ${process} ${caller.file}:${caller.line}] ${quote(message)}`
    if (error !== undefined) text += textPair('err', error)
    if (name !== '') text += textPair('logger', name)
    for (const [key, value] of values) text += textPair(key, value)
    for (const [key, value] of own) text += textPair(key, value)
    return `${text}\n`
  }
}

/** `mmdd hh:mm:ss`, in local time as klog does. Worked out once a second, not once a line. */
function createStamp(): (nowMs: number) => string {
  let second = NaN
  let text = ''
  return (nowMs) => {
    const current = Math.floor(nowMs / 1000)
    if (current !== second) {
      second = current
      text = localTime(new Date(current * 1000))
    }
    const micros = Math.floor((nowMs - current * 1000) * 1000)
    return `${text}.${String(micros).padStart(6, '0')}`
  }
}

function localTime(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = two(date.getMonth() + 1) + two(date.getDate())
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** ` key=value`. A value that cannot be written says why instead. */
function textPair(key: string, value: unknown): string {
  try {
    return ` ${key}=${textValue(typeof value === 'function' ? value() : value)}`
  } catch (error) {
    return ` ${key}=${quote(`<panic: ${firstLine(error)}>`)}`
  }
}

function textValue(value: unknown): string {
  if (typeof value === 'string') return textString(value)
  if (typeof value !== 'object' || value === null) return jsonText(value)
  if (value instanceof Error) return textString(errorText(value))
  if (value instanceof Uint8Array) return quoteBytes(value)
  if (value instanceof Date) return textString(goTime(value))
  const text = textOf(value)
  return text === undefined ? textJson(value) : textString(text)
}

function textJson(value: object): string {
  try {
    // Go's encoder keeps these out of JSON so that it can stand in HTML.
    return jsonText(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${hex(char.charCodeAt(0), 4)}`)
  } catch (error) {
    return quote(`<internal error: ${firstLine(error)}>`)
  }
}

/** The tab before a line of the value and the single space before the end mark make them unambiguous. */
function textString(text: string): string {
  if (!text.includes('\n')) return quote(text)
  const lines = text.endsWith('\n') ? text.slice(0, -1) : text
  return `<\n\t${lines.replaceAll('\n', '\n\t')}\n >`
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
])

/** The text in double quotes as Go's strconv.Quote: only what can be printed stands for itself. */
function quote(text: string): string {
  if (/^[ !#-[\]-~]*$/.test(text)) return `"${text}"`
  return `"${text.toWellFormed().replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, escape)}"`
}

function escape(char: string): string {
  const known = ESCAPES.get(char)
  if (known !== undefined) return known
  const code = char.codePointAt(0) as number
  if (code < 0x80) return `\\x${hex(code, 2)}`
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`
}

/** As Go's `%+q`: all but ASCII is escaped, and bytes that are no text are shown one by one. */
function quoteBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (isUtf8(buffer)) return quote(buffer.toString()).replace(/[^ -~]/gu, escape)
  return quote(buffer.toString('latin1')).replace(/[\u0080-\u00ff]|\\u00/g, (char) =>
    char === '\\u00' ? '\\x' : `\\x${hex(char.charCodeAt(0), 2)}`,
  )
}

/** As Go prints a time.Time in UTC. */
function goTime(date: Date): string {
  return `${date
    .toISOString()
    .replace('T', ' ')
    .replace(/\.?0*Z$/, '')} +0000 UTC`
}

function firstLine(error: unknown): string {
  return errorText(error).split('\n', 1)[0] as string
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0')
}
