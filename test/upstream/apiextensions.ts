/**
 * Runs the integration tests of upstream's apiextensions-apiserver against our kube-apiserver: `node
 * test/upstream/apiextensions.ts [pattern]`. It compiles a copy of the module with one file replaced, so that the tests
 * start our server. Each test has a new etcd. Prints each failed test and the number of passed ones. Needs Go and etcd.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

import { startEtcd } from './etcd.ts'
import { end, launch, prepareServer, untilReady } from './kube-apiserver.ts'

const MODULE = 'k8s.io/apiextensions-apiserver'
const VERSION = 'v0.36.4'
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'apiextensions', VERSION)
const PACKAGES = { integration: './test/integration', conversion: './test/integration/conversion' }
/** As upstream's fixture has it: these need what a lone apiextensions-apiserver lacks. */
const NO_ADMISSION =
  '--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy'

/** Tests that fail for a reason. */
const LISTED: Readonly<Record<string, string>> = {
  TestCBORStorageEnablement: 'the gate CBORServingAndStorage is refused',
  TestCBORServingEnablement: 'the gate CBORServingAndStorage is refused',
  TestEtcdStorage: 'definitions are stored as v1, upstream stores them as v1beta1',
  TestFieldSelectorDropFields: 'it starts a server that emulates Kubernetes 1.31',
  TestFieldSelectorDisablement: 'it starts a server that emulates Kubernetes 1.31',
  TestRatchetingDropFields: 'it starts a server that emulates Kubernetes 1.32',
}

/** In place of test/integration/fixtures/server.go: the same functions, on a server that this script starts. */
const FIXTURE = `package fixtures

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

type started struct{ Host, CA, Cert, Key, Etcd string }

func StartDefaultServer(t servertesting.Logger, flags ...string) (func(), *rest.Config, *serveroptions.CustomResourceDefinitionsServerOptions, error) {
	cmd := exec.Command(os.Getenv("HYPERKUBE_NODE"), append([]string{os.Getenv("HYPERKUBE_STARTER"), "--serve"}, flags...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, err
	}
	tearDown := func() { in.Close(); io.Copy(io.Discard, out); cmd.Wait() }
	line, err := bufio.NewReader(out).ReadBytes('\\n')
	var s started
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		tearDown()
		return nil, nil, nil, err
	}
	os.Setenv("KUBE_INTEGRATION_ETCD_URL", s.Etcd)
	config := &rest.Config{Host: s.Host, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(s.CA), CertData: []byte(s.Cert), KeyData: []byte(s.Key)}}
	options := serveroptions.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	options.RecommendedOptions.Etcd.StorageConfig.Prefix = "/registry"
	options.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList = []string{s.Etcd}
	return tearDown, config, options, nil
}

func StartDefaultServerWithConfigAccess(t servertesting.Logger, flags ...string) (func(), *rest.Config, apiserver.CompletedConfig, error) {
	tearDown, config, options, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, apiserver.CompletedConfig{}, err
	}
	recommended := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	recommended.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	recommended.RESTOptionsGetter = serveroptions.NewCRDRESTOptionsGetter(*options.RecommendedOptions.Etcd, nil, nil)
	whole := apiserver.Config{GenericConfig: recommended}
	whole.GenericConfig.ExternalAddress = "127.0.0.1:1"
	whole.GenericConfig.LoopbackClientConfig = config
	return tearDown, config, whole.Complete(), nil
}

func StartDefaultServerWithClients(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, error) {
	tearDown, config, _, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, nil, err
	}
	return tearDown, clientset.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), nil
}

func StartDefaultServerWithClientsAndEtcd(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, *clientv3.Client, string, error) {
	tearDown, config, options, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, nil, nil, "", err
	}
	servers := options.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList
	etcd, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: 20 * time.Second})
	return tearDown, clientset.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), etcd, "/registry", err
}

func IntegrationEtcdServers() []string { return nil }
`

/** Serves one test: prints the address, and stops when its standard input ends. */
async function serve(flags: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-apiextensions-'))
  const prepared = await prepareServer(folder)
  const log = join(folder, 'log')
  const { url, program: etcd } = await startEtcd(folder, ['--unsafe-no-fsync'])
  const entry = process.env['HYPERKUBE_ENTRY'] ?? join(import.meta.dirname, '../../src/cmd/entry.ts')
  const store = `--etcd-servers=${url}`
  const args = [
    '--disable-warning=ExperimentalWarning',
    entry,
    'kube-apiserver',
    ...prepared.flags,
    store,
    NO_ADMISSION,
  ]
  // Ours reads through its watch cache, always: what such a test wants to see without one must be so with it.
  const wanted = flags.filter((flag) => !flag.startsWith('--watch-cache'))
  const server = await launch(process.execPath, [...args, ...wanted], log)
  try {
    await untilReady(prepared, server)
    const { ca: CA, cert: Cert, key: Key } = prepared.tls
    const where = { Host: `https://127.0.0.1:${prepared.port}`, CA, Cert, Key, Etcd: url }
    process.stdout.write(`${JSON.stringify(where)}\n`)
    process.stdin.resume()
    await once(process.stdin, 'end')
  } catch (error) {
    process.stderr.write(`${String(error)}\n${readFileSync(log, 'utf8').slice(-2000)}\n`)
  } finally {
    await end(server, 'SIGTERM')
    await end(etcd, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Fetches, patches and compiles the tests; once. */
function build(): void {
  const env = { ...process.env, GOFLAGS: '-mod=mod' }
  const go = (...args: string[]): string => {
    const done = spawnSync('go', args, { cwd: FOLDER, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
    if (done.status !== 0) throw new Error(`go ${args.join(' ')} failed; Go 1.26 or later is needed`)
    return done.stdout
  }
  if (!existsSync(join(FOLDER, 'go.mod'))) {
    rmSync(FOLDER, { recursive: true, force: true })
    const download = spawnSync('go', ['mod', 'download', '-json', `${MODULE}@${VERSION}`], { env, encoding: 'utf8' })
    const { Dir } = JSON.parse(download.stdout) as { Dir: string }
    cpSync(Dir, FOLDER, { recursive: true })
    spawnSync('chmod', ['-R', 'u+w', FOLDER])
  }
  const fixture = join(FOLDER, 'test/integration/fixtures/server.go')
  chmodSync(fixture, 0o644)
  writeFileSync(fixture, FIXTURE)
  for (const [name, path] of Object.entries(PACKAGES)) go('test', '-c', '-o', `${name}.test`, path)
}

async function run(name: keyof typeof PACKAGES, pattern: string): Promise<Map<string, string>> {
  const args = ['-test.v', '-test.timeout=40m', '-test.parallel=2', `-test.run=${pattern}`]
  const env = { ...process.env, HYPERKUBE_NODE: process.execPath, HYPERKUBE_STARTER: import.meta.filename }
  const cwd = join(FOLDER, PACKAGES[name])
  const child = spawn(join(FOLDER, `${name}.test`), args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const results = new Map<string, string>()
  let text = ''
  for await (const piece of child.stdout) text += String(piece)
  writeFileSync(join(FOLDER, `${name}.log`), text)
  for (const [, verdict = '', test = ''] of text.matchAll(/^--- (PASS|FAIL|SKIP): (\S+)/gm)) results.set(test, verdict)
  return results
}

async function main(pattern = '.'): Promise<number> {
  build()
  const all = new Map<string, string>()
  for (const name of ['integration', 'conversion'] as const) {
    for (const [test, verdict] of await run(name, pattern)) all.set(test, verdict)
  }
  const withVerdict = (wanted: string): string[] =>
    [...all].flatMap(([test, verdict]) => (verdict === wanted ? [test] : []))
  const failed = withVerdict('FAIL')
  const unlisted = failed.filter((test) => !Object.hasOwn(LISTED, test))
  for (const test of failed) process.stdout.write(`failed: ${test} (${LISTED[test] ?? 'no reason listed'})\n`)
  for (const test of withVerdict('SKIP')) process.stdout.write(`skipped: ${test}\n`)
  process.stdout.write(`The output of the tests is in ${FOLDER}\n`)
  const listed = failed.length - unlisted.length
  process.stdout.write(
    `${withVerdict('PASS').length} of ${all.size} passed, ${unlisted.length} failed, ${listed} failed with a listed reason\n`,
  )
  return unlisted.length === 0 ? 0 : 1
}

const [first, ...others] = process.argv.slice(2)
if (first === '--serve') await serve(others)
else process.exitCode = await main(first)
