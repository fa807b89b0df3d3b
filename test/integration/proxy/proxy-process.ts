/** kube-proxy in a process that can be killed: `<kubeconfig> <network namespace> <mode>`. Writes a line when all rules are there. */
import process from 'node:process'

import { connect } from '#client/connect.ts'
import { createRegistry } from '#lib/metrics.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { startProxy } from '#proxy/proxy.ts'

import { AROUND, backendIn, type Mode } from './proxy-bed.ts'

const [kubeconfig = '', namespace = '', mode = 'nftables'] = process.argv.slice(2)
const { client } = await connect({ kubeconfig, userAgent: 'kube-proxy' })
const backends = [backendIn(['ip', 'netns', 'exec', namespace], 'IPv4', mode as Mode)]
const meters = createProxyMeters(createRegistry())
await startProxy({ ...AROUND, client, backends, meters }, new AsyncDisposableStack()).ready
process.stdout.write('ready\n')
