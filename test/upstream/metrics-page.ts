/** Fetches /metrics of a program with a self-signed certificate. */
import { request } from 'node:https'

export function metricsPage(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path: '/metrics', rejectUnauthorized: false }, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()))
    })
    asking.on('error', reject)
    asking.end()
  })
}
