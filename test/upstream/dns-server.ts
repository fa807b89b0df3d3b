/**
 * Runs our DNS server as a separate process: `node dns-server.ts KUBECONFIG ADDRESS PORT RESOLV_CONF`. Ends with its
 * standard input.
 */
import { readFile } from 'node:fs/promises'

import { connect } from '#client/connection/connect.ts'
import { startDns } from '#dns/start.ts'
import { realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'

const [kubeconfig = '', address = '127.0.0.1', port = '0', resolvConf = ''] = process.argv.slice(2)
const closing = new AsyncDisposableStack()
const { client } = closing.use(await connect({ kubeconfig, userAgent: 'dns' }))
const log = createLog({ stream: process.stderr, clock: realClock }).logger
const dns = await startDns(
  {
    client,
    random: secureRandom,
    log,
    domain: 'cluster.local',
    resolvConf,
    readFile: (path) => readFile(path, 'utf8'),
    own: [],
  },
  closing,
)
await dns.synced
const { udpPort } = await dns.listen(address, Number(port))
process.stdout.write(`${udpPort}\n`)
// The measurement includes only memory that remains after garbage collection.
process.on('SIGUSR2', () => (globalThis as { gc?: () => void }).gc?.())
process.stdin.resume()
process.stdin.on('end', () => void closing.disposeAsync())
