/** Reads manifests from URLs. Retries up to three times after server errors. */
import { get as getHttp, type IncomingMessage, STATUS_CODES } from 'node:http'
import { get as getHttps } from 'node:https'

import { realClock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import { readAll } from './manifests.ts'

const ATTEMPTS = 3
const MAX_REDIRECTS = 10

/** Throws KubectlError. */
export async function readRemote(url: string): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const answer = await follow(url).catch((cause: Error) => {
      if (attempt >= ATTEMPTS) throw new KubectlError(`Get ${goQuote(url)}: ${cause.message}`, { cause })
      return undefined
    })
    if (answer?.status === 200) return answer.text
    if (answer !== undefined && (answer.status < 500 || attempt >= ATTEMPTS)) {
      const { status } = answer
      throw new KubectlError(
        `unable to read URL ${goQuote(url)}, server reported ${status} ${STATUS_CODES[status] ?? ''}, status code=${status}`,
      )
    }
    await sleep(realClock, 1000)
  }
}

interface Answer {
  readonly status: number
  readonly text: string
}

async function follow(url: string): Promise<Answer> {
  let at = url
  for (let count = 0; count <= MAX_REDIRECTS; count++) {
    const answer = await ask(at)
    const { statusCode: status = 0, headers } = answer
    const text = (await readAll(answer)).toString()
    if (status < 300 || status > 399 || headers.location === undefined) return { status, text }
    at = new URL(headers.location, at).href
  }
  throw new Error('stopped after 10 redirects')
}

function ask(url: string): Promise<IncomingMessage> {
  const get = url.startsWith('https:') ? getHttps : getHttp
  return new Promise((done, fail) => {
    get(url, done).on('error', fail)
  })
}
