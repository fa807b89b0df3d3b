/** Logs every request at `-v=6` and above, in upstream's format. */
import { STATUS_CODES } from 'node:http'

import type { HttpRequest } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import type { ProgramContext } from '#lib/program.ts'

import { logLine } from '../klog.ts'

interface LogTools extends Pick<ProgramContext, 'stderr' | 'clock'> {
  readonly level: number
}

interface RequestLogger {
  /** The same response; logs its body at high levels. */
  answered(response: HttpResponse): HttpResponse
  failed(error: unknown): void
}

const SECRET: ReadonlySet<string> = new Set(['authorization'])

export function logRequest(request: HttpRequest, tools: LogTools): RequestLogger {
  const { level, clock, stderr } = tools
  const { method = 'GET', url } = request
  const write = (text: string): void => void stderr.write(logLine('I', clock.now(), 'round_trippers.go:632', text))
  const begun = clock.elapsed()
  if (level >= 8 && request.body !== undefined) {
    write(`"Request Body" body=${JSON.stringify(bodyText(request.body as string, level))}`)
  }
  if (level >= 7) {
    write(`"Request" verb="${method}" url="${String(url)}" headers=${headersText(request.headers ?? {})}`)
  }
  const elapsed = (): number => Math.round(clock.elapsed() - begun)
  return {
    answered(response) {
      const status = `${response.status} ${STATUS_CODES[response.status] ?? ''}`
      const headers = level >= 8 ? ` headers=${headersText(response.headers)}` : ''
      write(`"Response" verb="${method}" url="${String(url)}" status="${status}"${headers} milliseconds=${elapsed()}`)
      return level >= 8
        ? shown(response, (text) => write(`"Response Body" body=${JSON.stringify(bodyText(text, level))}`))
        : response
    },
    failed() {
      write(`"Response" verb="${method}" url="${String(url)}" status="" milliseconds=${elapsed()}`)
    },
  }
}

function shown(response: HttpResponse, show: (text: string) => void): HttpResponse {
  return {
    ...response,
    async bytes(limit) {
      const bytes = await response.bytes(limit)
      show(bytes.toString())
      return bytes
    },
    async text(limit) {
      const text = await response.text(limit)
      show(text)
      return text
    },
  }
}

/** Level 8 logs the beginning of a body, 9 more of it, 10 all of it. */
function bodyText(text: string, level: number): string {
  const max = level >= 10 ? Infinity : level >= 9 ? 10_240 : 1024
  return text.length <= max ? text : `${text.slice(0, max)} [truncated ${text.length - max} chars]`
}

function headersText(headers: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(headers)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `\t${canonical(name)}: ${SECRET.has(name) ? 'Bearer <masked>' : String(value)}\n`)
  return `<\n${lines.join('')} >`
}

function canonical(name: string): string {
  return name.replaceAll(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase())
}
