-- Neovim without a screen as a client of `devlint server`:
--
--     RECIPE=recipe.lua RESULT=result.json nvim --headless --clean -n -S client.lua
--
-- The current folder has `train.py`. RECIPE is the recipe of docs/editors.md, for Neovim 0.11 and newer; an older one is
-- told the same by its own functions. RESULT gets what each step gave, as JSON. `devlint` is on the search path.
local steps = {}
local published = {} -- the version of each text for which findings came last
local ends = {} -- how each server ended
local has_recipe = vim.lsp.config ~= nil
local client_id
local opened -- how often the text had changed when the server was told of it; it is version 0 then

local function wait(what, condition)
  assert(vim.wait(60000, condition, 20), "it did not come: " .. what)
end

local show = vim.lsp.handlers["textDocument/publishDiagnostics"]
vim.lsp.handlers["textDocument/publishDiagnostics"] = function(err, result, ...)
  local given = { show(err, result, ...) }
  published[result.uri] = result.version
  return unpack(given)
end

local function ended(code, signal)
  table.insert(ends, signal ~= 0 and ("signal " .. signal) or code)
end

local function configure()
  if has_recipe then
    dofile(vim.env.RECIPE)
    vim.lsp.config("devlint", { on_exit = ended })
  end
end

local function clients()
  return (vim.lsp.get_clients or vim.lsp.get_active_clients)()
end

-- Opens the file, as a user does; an older Neovim has to be told to start the server.
local function open()
  published = {}
  vim.cmd("edit! train.py")
  vim.bo.filetype = "python"
  if not has_recipe then
    local id = vim.lsp.start_client({
      name = "devlint",
      cmd = { "devlint", "server" },
      root_dir = vim.fn.getcwd(),
      on_exit = ended,
    })
    vim.lsp.buf_attach_client(0, id)
  end
  wait("a server", function()
    return #clients() > 0 and clients()[1].server_capabilities ~= nil
  end)
  client_id = clients()[1].id
  opened = vim.api.nvim_buf_get_changedtick(0)
end

-- The findings of the text as it is now, each with the text that it marks.
local function findings()
  wait("findings", function()
    local version = vim.api.nvim_buf_get_changedtick(0)
    return published[vim.uri_from_bufnr(0)] == (version == opened and 0 or version)
  end)
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(0)) do
    local rows = vim.api.nvim_buf_get_text(0, each.lnum, each.col, each.end_lnum, each.end_col, {})
    table.insert(found, each.code .. " " .. table.concat(rows, "\n"))
  end
  return found
end

local function row_of(text)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column then
      return row, column - 1
    end
  end
  error("no row with " .. text)
end

local function go_to(text)
  vim.api.nvim_win_set_cursor(0, { row_of(text) })
end

local function floating()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      return window
    end
  end
end

local function hover(text)
  go_to(text)
  vim.lsp.buf.hover()
  wait("a hover", floating)
  local shown = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(floating()), 0, -1, false)
  vim.api.nvim_win_close(floating(), true)
  return table.concat(shown, "\n")
end

-- Asks for the actions at the cursor, and takes the first one whose title is wanted.
local function act(is_wanted, only)
  local title
  vim.ui.select = function(items, _, choose)
    for number, item in ipairs(items) do
      local action = item.action or item[2]
      if not title and is_wanted(action.title) then
        title = action.title
        choose(item, number)
      end
    end
  end
  local before = vim.api.nvim_buf_get_changedtick(0)
  local context = only and { only = { only }, diagnostics = {} } or nil
  vim.lsp.buf.code_action(vim.fn.has("nvim-0.8") == 1 and { context = context } or context)
  wait("an action", function()
    return vim.api.nvim_buf_get_changedtick(0) ~= before
  end)
  return { title = title, left = findings() }
end

local function stop()
  local number = #ends
  vim.lsp.stop_client(client_id)
  wait("the end", function()
    return #ends > number and #clients() == 0
  end)
  return ends[#ends]
end

local function run()
  configure()
  open()
  local version = vim.version()
  local encoding = clients()[1].offset_encoding
  steps.client = ("Neovim %d.%d.%d, %s"):format(version.major, version.minor, version.patch, encoding)
  steps.open = findings()
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "# \f part one" })
  findings()
  vim.api.nvim_buf_set_lines(0, 4, 4, false, { "v = model(torch.zeros(1, 2))" })
  steps.edit = findings()
  steps.hover = hover("torch.ones")
  go_to("torch.zeros")
  steps.fix = act(function(title)
    return title:find("^DEV102") and not title:find("ignore")
  end)
  steps.fixed = vim.api.nvim_buf_get_lines(0, 4, 5, false)[1]
  go_to("torch.ones")
  steps.ignore = act(function(title)
    return title:find("^DEV102: ignore")
  end)
  steps.fix_all = act(function()
    return true
  end, "source.fixAll")
  steps.stop = stop()
  open()
  steps.restart = findings()

  for _, process in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
    vim.loop.kill(process, "sigkill")
  end
  wait("the crash", function()
    return #ends == 2 and #clients() == 0
  end)
  steps.crash = ends[2]
  if vim.lsp.inlay_hint then
    vim.lsp.config("devlint", { settings = { devlint = { inlayHints = true } } })
    vim.lsp.inlay_hint.enable(true)
  end
  open()
  steps.after_the_crash = findings()
  if vim.lsp.inlay_hint then
    wait("hints", function()
      return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0
    end)
    steps.hints = vim.tbl_map(function(each)
      local row = vim.api.nvim_buf_get_lines(0, each.inlay_hint.position.line, each.inlay_hint.position.line + 1, true)[1]
      return row:sub(1, each.inlay_hint.position.character) .. each.inlay_hint.label
    end, vim.lsp.inlay_hint.get({ bufnr = 0 }))
  end
end

local ok, problem = xpcall(run, debug.traceback)
steps.problem = not ok and problem or nil
local text = vim.fn.json_encode(steps):gsub(vim.pesc(vim.uri_from_fname(vim.fn.getcwd())), "file:///project")
vim.fn.writefile({ text }, vim.env.RESULT)
vim.cmd(ok and "qall!" or "cquit")
