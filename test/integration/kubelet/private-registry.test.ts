/** Tests a kubelet with real containers and a registry that requires authentication. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { startKubeletBed } from '../../upstream/kubelet-bed.ts'
import { whyNoContainerd } from './containerd-bed.ts'
import {
  credentialFlags,
  GUARD,
  hostOf,
  makePuller,
  makeSecret,
  removePuller,
  startPrivateRegistry,
  stateOf,
  untilSaid,
} from './private-registry.ts'

const fault = await whyNoContainerd()
if (fault !== undefined) process.stderr.write(`private registry: skipping, ${fault}\n`)

describe('images of a private registry', { skip: fault ?? false }, () => {
  it('are pulled with pull secrets or a credential provider; other pods get the error of the registry', async () => {
    await using closing = new AsyncDisposableStack()
    const bed = await startKubeletBed('pulling', closing)
    const registry = closing.use(await startPrivateRegistry(bed.folder, GUARD))
    const tokens = closing.use(await startPrivateRegistry(bed.folder, { ...GUARD, scheme: 'Bearer' }))
    const [host, tokenHost] = [hostOf(registry), hostOf(tokens)]
    const image = `${host}/plain/busybox:1`
    await bed.start('sources', {}, await credentialFlags(bed.folder, host, GUARD))
    await makeSecret(bed, 'right', host, GUARD.password)
    await makeSecret(bed, 'wrong', host, 'guessed')
    await makeSecret(bed, 'right-there', tokenHost, GUARD.password)

    await makePuller(bed, 'nobody', image)
    const refused = await stateOf(bed, 'nobody', ['ErrImagePull', 'ImagePullBackOff'])
    assert.ok(refused !== 'running')
    assert.match(refused.message ?? '', new RegExp(`failed to pull and unpack image "${RegExp.escape(image)}"`))
    assert.match(refused.message ?? '', /401 Unauthorized|authorization failed|no basic auth credentials/)
    const waiting = await stateOf(bed, 'nobody', ['ImagePullBackOff'])
    assert.ok(waiting !== 'running')
    assert.ok(waiting.message?.startsWith(`Back-off pulling image "${image}": ErrImagePull: `))
    for (const start of [
      `Pulling: Pulling image "${image}"`,
      `Failed: Failed to pull image "${image}": `,
      'Failed: Error: ErrImagePull',
      `BackOff: Back-off pulling image "${image}"`,
      'Failed: Error: ImagePullBackOff',
    ]) {
      await untilSaid(bed, 'nobody', start)
    }
    assert.equal(registry.users.length, 0, 'nobody was let in')

    await makePuller(bed, 'guessing', image, { secrets: ['wrong'] })
    const guessed = await stateOf(bed, 'guessing', ['ErrImagePull', 'ImagePullBackOff'])
    assert.ok(guessed !== 'running')
    await makePuller(bed, 'reader', image, { secrets: ['wrong', 'right'] })
    assert.equal(await stateOf(bed, 'reader', []), 'running')
    assert.ok(registry.users.includes(GUARD.username))
    // The image is now present, but only for pods that could have pulled it.
    await makePuller(bed, 'borrowing', image, { policy: 'IfNotPresent' })
    assert.notEqual(await stateOf(bed, 'borrowing', ['ErrImagePull', 'ImagePullBackOff']), 'running')
    await makePuller(bed, 'sly', image, { secrets: ['wrong'], policy: 'Never' })
    assert.notEqual(await stateOf(bed, 'sly', ['ErrImageNeverPull']), 'running')
    await makePuller(bed, 'entitled', image, { secrets: ['right'], policy: 'Never' })
    assert.equal(await stateOf(bed, 'entitled', []), 'running')
    await makePuller(bed, 'asker', `${host}/asked/busybox:1`)
    assert.equal(await stateOf(bed, 'asker', []), 'running')
    await makePuller(bed, 'bearer', `${tokenHost}/plain/busybox:1`, { secrets: ['right-there'] })
    assert.equal(await stateOf(bed, 'bearer', []), 'running')
    for (const name of ['nobody', 'guessing', 'reader', 'borrowing', 'sly', 'entitled', 'asker', 'bearer'])
      await removePuller(bed, name)
  })
})
