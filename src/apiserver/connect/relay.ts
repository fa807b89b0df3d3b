/**
 * Streams a backend's response to the client with backpressure. If the backend's response ends early, the client's
 * response is aborted.
 */
import type { AnswerStream, StreamAnswer } from '#component/requests/call.ts'
import { onAbort } from '#lib/abort.ts'
import type { HttpResponse } from '#lib/http/response.ts'

/** The body part of the response. `body` replaces the response's own. */
export function relayed(
  response: HttpResponse,
  body: AsyncIterable<Buffer> = response.body,
): Required<Pick<StreamAnswer, 'isPatient' | 'stream' | 'drop'>> {
  return { isPatient: true, stream: (out) => pour(response, out, body), drop: () => response.discard() }
}

/** Writes the body until it ends or the client leaves. */
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
    // A truncated response must not look complete.
    out.abort()
  } finally {
    release()
    response.discard()
  }
}

/** Reads at most this many bytes and does not wait for the rest. */
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
