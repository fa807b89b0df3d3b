/** Resets an HTTP/2 stream. */
import type { Http2Stream } from 'node:http2'

/**
 * Resets a stream so that the peer cannot take what it got for complete. `Http2Stream.close` alone would do the
 * opposite: it first ends a stream that is still being written, properly, and the reset comes too late to matter. The
 * code reaches the peer only when our side had ended before; otherwise it is INTERNAL_ERROR.
 */
export function resetStream(stream: Http2Stream, code: number): void {
  if (stream.destroyed) return
  if (stream.writableEnded) stream.close(code)
  else stream.destroy(new Error('The stream was broken off'))
}
