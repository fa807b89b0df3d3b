/**
 * Runs kube-proxy as a process that a test can kill: `<kubeconfig> <network namespace> <mode>`. Prints a line when all
 * rules are written.
 */
import process from 'node:process'

import { connect } from '#client/connection/connect.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { startProxy } from '#proxy/proxy.ts'

import { AROUND, backendIn, type Mode } from './proxy-bed.ts'

const [kubeconfig = '', namespace = '', mode = 'nftables'] = process.argv.slice(2)
const { client } = await connect({ kubeconfig, userAgent: 'kube-proxy' })
const backends = [backendIn(['ip', 'netns', 'exec', namespace], 'IPv4', mode as Mode)]
const meters = createProxyMeters(createRegistry())
await startProxy({ ...AROUND, client, backends, meters }, new AsyncDisposableStack()).ready
process.stdout.write('ready\n')
