/** What another server answers, on its way to the client: no faster than the client takes it, and broken off when it is. */
import { onAbort } from '#lib/abort.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import type { AnswerStream, StreamAnswer } from '../call.ts'

/** The part of an answer that is another's body. `body`: in place of the response's own. */
export function relayed(
  response: HttpResponse,
  body: AsyncIterable<Buffer> = response.body,
): Required<Pick<StreamAnswer, 'isPatient' | 'stream' | 'drop'>> {
  return { isPatient: true, stream: (out) => pour(response, out, body), drop: () => response.discard() }
}

/** Writes the body until it is over or the client has gone. */
async function pour(response: HttpResponse, out: AnswerStream, body: AsyncIterable<Buffer>): Promise<void> {
  const release = onAbort(out.signal, () => response.discard())
  try {
    for await (const piece of body) {
      if (!out.write(piece)) await out.drained()
      if (out.signal.aborted) break
    }
    if (out.signal.aborted) out.abort()
    else out.end()
  } catch {
    // Half an answer must not look like a whole one.
    out.abort()
  } finally {
    release()
    response.discard()
  }
}

/** The beginning of what comes, at most so much; the rest is not waited for. */
export async function firstOf(body: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of body) {
    pieces.push(piece)
    size += piece.length
    if (size >= limitBytes) break
  }
  return Buffer.concat(pieces).subarray(0, limitBytes)
}
